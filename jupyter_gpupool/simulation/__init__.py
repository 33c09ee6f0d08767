"""Virtual time, replay, assessment: drives the scheduling rooms on recorded or invented pools."""
