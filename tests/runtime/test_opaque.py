"""Results as frames: put together, stored, sent on, and equal in the end."""

import threading

import numpy as np
import pandas as pd
import pytest
from dask.sizeof import sizeof
from distributed.protocol import dumps, loads
from distributed.protocol.serialize import Serialize, Serialized

from jupyter_gpupool.protocol.keeping import UnkeptReason
from jupyter_gpupool.runtime.opaque_store import CannotKeep, OpaqueStore

_PIECE = 1000
_VALUES = [
    np.arange(5000, dtype=np.uint8),
    np.arange(999, dtype=np.uint8),
    np.arange(1000, dtype=np.uint8),
    np.arange(1001, dtype=np.uint8),
    [np.arange(n * 700) for n in range(5)],
    {"a": np.arange(3000), "b": "text" * 1000},
    pd.DataFrame({"a": range(2000)}),
    b"x" * 3500,
    "",
    None,
]


def _travel(value, *, is_read):
    """One message, in pieces and compressed, as distributed sends it."""
    context = {"compression": "zlib"}
    frames = dumps({"it": value}, context=context, frame_split_size=_PIECE)
    joined = [memoryview(bytes(frame)) for frame in frames]
    return loads(joined, deserialize=is_read)["it"]


@pytest.fixture
def store(tmp_path):
    """With room in memory for a kilobyte, and in all for a megabyte."""
    store = OpaqueStore(tmp_path / "results", memory_bytes=1000, quota_bytes=2**20)
    yield store
    store.close()


def _result(nbytes):
    return Serialized({"serializer": "pickle"}, [bytes(nbytes)])


@pytest.mark.parametrize("value", _VALUES, ids=lambda value: type(value).__name__)
def test_second_journey_ends_as_the_first(store, value):
    """Cut in pieces, packed, put together, stored, and cut in pieces again."""
    store["it"] = _travel(Serialize(value), is_read=False)
    for _ in range(2):
        back = _travel(Serialize(store["it"]), is_read=True)
        assert repr(back) == repr(value)


def test_result_beyond_memory_is_a_file_until_it_goes(store, tmp_path):
    """Small ones stay in memory; a dropped one's file is gone with it."""
    store["small"], store["large"] = _result(10), _result(5000)
    (file,) = (tmp_path / "results").iterdir()
    assert file.stat().st_size == 5000
    assert (store.held_bytes, store.spilled_total) == (5010, (5000, 5000))
    del store["large"]
    assert not file.exists()
    assert store.held_bytes == 10


def test_frames_of_a_file_outlive_it(store):
    """A result that is dropped while it is being sent still arrives."""
    store["large"] = Serialized({}, [b"a" * 5000, b"", b"b" * 5000])
    frames = store["large"].frames
    del store["large"]
    assert [bytes(frame) for frame in frames] == [b"a" * 5000, b"", b"b" * 5000]


def test_quota_is_for_memory_and_files_together(store):
    """What would exceed it is refused, and leaves no trace."""
    store["most"] = _result(2**20 - 100)
    with pytest.raises(CannotKeep) as refused:
        store["more"] = _result(101)
    assert refused.value.reason is UnkeptReason.TOO_LARGE
    assert "more" not in store
    store["rest"] = _result(100)
    assert store.held_bytes == 2**20


def test_error_instead_of_a_result_is_refused(store):
    """Distributed sends an error's text as if it were the result; nested ones too."""

    class Unwritable:
        def __reduce__(self):
            raise TypeError("not for sending")

    for value in (Unwritable(), [np.arange(3), Unwritable()]):
        with pytest.raises(CannotKeep, match="not for sending") as refused:
            store["it"] = _travel(Serialize(value), is_read=False)
        assert refused.value.reason is UnkeptReason.UNWRITABLE


def test_small_result_does_not_keep_its_whole_message(store):
    """One message brings many results in one buffer."""
    message = memoryview(bytearray(2**20))
    store["it"] = Serialized({}, [message[:10]])
    assert not isinstance(store["it"].frames[0], memoryview)


def test_results_go_from_memory_to_files_the_largest_first(tmp_path):
    """What is small stays: a file would cost more than it frees."""
    store = OpaqueStore(tmp_path / "results", memory_bytes=2**20, quota_bytes=2**20)
    store["small"], store["middle"], store["large"] = (_result(n) for n in (100, 20_000, 50_000))
    settled = []
    while (found := store.largest_in_memory()) is not None:
        key, result = found
        store.swap(key, result, store.written(result))
        settled.append(key)
    assert settled == ["large", "middle"]
    assert (store.held_bytes, store.spilled_total[0]) == (70_100, 70_000)
    assert bytes(store["large"].frames[0]) == bytes(50_000)
    store.close()


def test_file_of_a_result_that_has_gone_is_removed(tmp_path):
    """It was released while its file was written."""
    store = OpaqueStore(tmp_path / "results", memory_bytes=2**20, quota_bytes=2**20)
    store["it"] = _result(50_000)
    _, result = store.largest_in_memory()
    written = store.written(result)
    del store["it"]
    store.swap("it", result, written)
    assert not list((tmp_path / "results").iterdir())
    assert store.held_bytes == 0
    store.close()


def test_replaced_result_counts_once(store):
    """The older one is let go of."""
    store["it"] = _result(5000)
    store["it"] = _result(600)
    assert store.held_bytes == 600


def test_folder_that_cannot_be_written_is_no_room(store, tmp_path):
    """And nothing of it counts afterwards."""
    (tmp_path / "results").rmdir()
    with pytest.raises(CannotKeep) as refused:
        store["it"] = _result(5000)
    assert refused.value.reason is UnkeptReason.NO_ROOM
    assert store.held_bytes == 0


def test_new_store_clears_what_a_killed_one_left(tmp_path):
    """Its results were lost with it."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "0").write_bytes(b"old")
    store = OpaqueStore(tmp_path / "results", memory_bytes=0, quota_bytes=100)
    assert not list((tmp_path / "results").iterdir())
    store.close()
    assert not (tmp_path / "results").exists()


def test_many_threads_never_exceed_the_quota(tmp_path):
    """Two messages are stored at once."""
    store = OpaqueStore(tmp_path / "results", memory_bytes=50, quota_bytes=1000)
    kept = []

    def fill():
        for _ in range(100):
            try:
                kept.append(store.admit(_result(10)))
            except CannotKeep:
                return

    threads = [threading.Thread(target=fill) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) == 100
    for result in kept:
        store.discard(result)
    assert store.held_bytes == 0
    store.close()


def test_size_is_that_of_the_frames(store):
    """Distributed asks each result for it; a file is not read for that."""
    store["it"] = _result(5000)
    assert sizeof(store["it"]) == 5000
