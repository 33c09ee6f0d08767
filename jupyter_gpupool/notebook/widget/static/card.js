// Draws a claim's card from what the kernel pushes, and passes presses on. It decides nothing about
// claims: words, order and rights all come with the card (notebook/widget/card.py). What only a
// browser knows is here: its reader's language, zone and minute, and whether the kernel is there.

const ICONS = {
  waiting: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18m0 2.1a6.9 6.9 0 1 0 0 13.8 6.9 6.9 0 0 0 0-13.8M11 7h2v4.6l3.3 2-1 1.6L11 12.7z",
  changing: "M12 3a9 9 0 0 1 9 9h-2.4A6.6 6.6 0 1 0 12 18.6V21a9 9 0 1 1 0-18",
  running: "M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16",
  warned: "M12 22a2.2 2.2 0 0 0 2.2-2.2H9.8A2.2 2.2 0 0 0 12 22m7-6v-5.2c0-3.2-1.7-5.8-4.8-6.5v-.6a2.2 2.2 0 0 0-4.4 0v.6C6.7 5 5 7.6 5 10.8V16l-2 2v1h18v-1z",
  hibernated: "M12.3 3a9 9 0 1 0 8.7 11.2A7.2 7.2 0 0 1 12.3 3",
  released: "M9 16.2 4.8 12l-1.6 1.6L9 19.4 21 7.4 19.4 5.8z",
  expired: "M6 2h12v5.5L13.5 12l4.5 4.5V22H6v-5.5l4.5-4.5L6 7.5zm2.2 2.2v2.4L12 10.4l3.8-3.8V4.2zM12 13.6l-3.8 3.8v2.4h7.6v-2.4z",
  reclaimed: "M12.5 8c-2.65 0-5.05.99-6.9 2.6L2 7v9h9l-3.62-3.62c1.39-1.16 3.16-1.88 5.12-1.88 3.54 0 6.55 2.31 7.6 5.5l2.37-.78C21.08 11.03 17.15 8 12.5 8",
  cancelled: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18M5.1 12a6.9 6.9 0 0 0 11 5.6L6.4 7.9A6.9 6.9 0 0 0 5.1 12m2.8-5.6 9.7 9.7A6.9 6.9 0 0 0 7.9 6.4",
  failed: "M12 2.5 23 21H1zm-1.1 7v5.5h2.2V9.5zm0 7v2.2h2.2v-2.2z",
  keep: "M12 4.5c.9 0 1.8.15 2.6.45l-1.5 1.6a6.4 6.4 0 1 0 5.2 5.5h2.2A8.5 8.5 0 1 1 12 4.5M11 8h2v4.5l3.2 1.9-.95 1.6L11 13.6zM19 2v3h3v2h-3v3h-2V7h-3V5h3V2z",
  dashboards: "M4 20V10h3.5v10zm6.25 0V4h3.5v16zm6.25 0v-7H20v7z",
  unlinked: "M17 7h-4v2h4a3 3 0 0 1 1.5 5.6l1.5 1.5A5 5 0 0 0 17 7M2 4.3 5.1 7.4A5 5 0 0 0 7 17h4v-2H7a3 3 0 0 1-.3-6l2.1 2H8v2h2.7l8.6 8.7 1.3-1.3L3.3 3z",
};
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const ENDED = ["restarting", "autorestarting", "terminating", "dead"];
const SPOKEN = new Map(); // by claim: what was said of it last
const SLOW = 1500; // ms after which an unanswered press is explained

// Small words for the DOM ------------------------------------------------------------------------

function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "gp-Icon");
  svg.dataset.icon = name;
  path.setAttribute("d", ICONS[name]);
  path.setAttribute("fill-rule", "evenodd");
  svg.append(path);
  return svg;
}

// Time: written here, for only a browser knows its reader's zone ----------------------------------

const fill = (template, ...values) => template.replace(/\{(\d)\}/g, (_, at) => values[at]);

function duration(ms, units, round = Math.floor) {
  const minutes = round(ms / MINUTE);
  if (ms < MINUTE) return units.moment;
  if (minutes < 60) return fill(units.minutes, minutes);
  const hours = Math.floor(minutes / 60);
  const after = hours < 24 ? minutes % 60 : hours % 24;
  const whole = hours < 24 ? fill(units.hours, hours) : fill(units.days, Math.floor(hours / 24));
  if (!after) return whole;
  const rest = hours < 24 ? fill(units.minutes_after, String(after).padStart(2, "0")) : fill(units.hours, after);
  return `${whole} ${rest}`;
}

function clock(at, now, language) {
  const time = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  if (at.toDateString() === now.toDateString()) return time.format(at);
  const far = Math.abs(at - now) >= 6 * DAY;
  const day = far ? { month: "short", day: "numeric" } : { weekday: "short" };
  return `${new Intl.DateTimeFormat(language, day).format(at)} ${time.format(at)}`;
}

function written(part, now, card) {
  const at = new Date(part.at);
  if (part.form === "clock") return clock(at, now, card.language);
  if (part.form === "age") return duration(now - at, card.units);
  return at <= now ? card.units.now : fill(card.units.left, duration(at - now, card.units, Math.ceil));
}

// What was true a while ago is not counted on as if it still were.
const nowFor = (card, isOld) => (isOld ? new Date(card.as_of) : new Date());

function words(text, card, isOld) {
  return text.map((part) => {
    if (typeof part === "string") return part;
    const node = h("time", { datetime: part.at }, written(part, nowFor(card, isOld), card));
    if (!isOld) node.moment = part;
    return node;
  });
}

const plain = (text, card) => text.map((part) => (typeof part === "string" ? part : written(part, new Date(), card))).join("");

// What a browser finds around it -------------------------------------------------------------------

function languageOf(cards) {
  const chinese = /^zh(?![-_](tw|hk|mo|hant))/i.test(document.documentElement.lang);
  return cards[chinese ? "zh-CN" : "en"];
}

// A page made of a notebook keeps the widgets' state in itself, and no kernel stands behind it.
const isExported = () => Boolean(document.querySelector("script[type='application/vnd.jupyter.widget-state+json']"));

function dashboardsUrl(claim) {
  const config = document.getElementById("jupyter-config-data");
  if (!config) return null;
  try {
    const base = JSON.parse(config.textContent).baseUrl;
    return base ? `${base}gpupool/dashboards/${encodeURIComponent(claim)}/status` : null;
  } catch {
    return null;
  }
}

// The card -----------------------------------------------------------------------------------------

class CardView {
  constructor(model, el) {
    this.model = model;
    this.sent = ""; // pressed here, not yet taken up by the kernel
    this.isSlow = false;
    this.asking = null; // the act whose question is open here
    this.reason = ""; // what has been typed into it
    this.kernel = model.widget_manager?.kernel;
    this.isGone = isExported() || this.kernel === null;
    this.article = h("article", { class: "gp gp-Card", tabindex: "-1", onkeydown: (event) => this.key(event) });
    this.spoken = h("p", { class: "gp-spoken", role: "status" });
    el.append(this.article, this.spoken);
    this.watch();
    this.draw();
  }

  watch() {
    this.heard = () => { this.isGone = false; this.settle(); this.draw(); };
    this.gone = () => { this.isGone = true; this.settle(); this.draw(); };
    this.status = (_kernel, status) => ENDED.includes(status) && this.gone();
    this.shown = () => this.tick();
    for (const name of ["cards", "doing", "trouble"]) this.model.on(`change:${name}`, this.heard);
    // Widgets hear of a restart; of an end, only a manager that lets its kernel be seen can tell.
    this.model.on("comm_live_update", this.gone);
    this.kernel?.statusChanged?.connect(this.status);
    this.kernel?.disposed?.connect(this.gone);
    document.addEventListener("visibilitychange", this.shown);
  }

  close() {
    for (const name of ["cards", "doing", "trouble"]) this.model.off(`change:${name}`, this.heard);
    this.model.off("comm_live_update", this.gone);
    this.kernel?.statusChanged?.disconnect(this.status);
    this.kernel?.disposed?.disconnect(this.gone);
    document.removeEventListener("visibilitychange", this.shown);
    clearTimeout(this.timer);
    clearTimeout(this.slow);
    this.article.remove();
    this.spoken.remove();
  }

  get isOld() { return this.isGone || this.card.is_old; }

  // Pressing

  press(act, more = {}) {
    if (this.sent || this.model.get("doing")) return;
    this.asking = null;
    this.sent = act;
    this.slow = setTimeout(() => { this.isSlow = true; this.draw(); }, SLOW);
    this.model.send({ act, ...more });
    this.draw();
  }

  settle() {
    clearTimeout(this.slow);
    this.sent = "";
    this.isSlow = false;
  }

  ask(button) {
    this.asking = button;
    this.reason = "";
    this.draw();
    this.article.querySelector(button.confirm.reason ? "[data-key='reason']" : "[data-key='no']").focus();
  }

  answer() {
    const { act, confirm } = this.asking;
    const reason = this.reason.trim();
    if (!confirm.reason) this.press(act);
    else if (reason) this.press(act, { reason });
    else this.article.querySelector("[data-key='reason']").focus();
  }

  unask() {
    const act = this.asking.act;
    this.asking = null;
    this.draw();
    this.article.querySelector(`[data-key='${act}']`)?.focus();
  }

  key(event) {
    if (event.key === "Escape" && this.asking) { event.stopPropagation(); this.unask(); }
  }

  // Drawing

  draw() {
    const before = this.card;
    this.card = languageOf(this.model.get("cards"));
    const card = this.card;
    if (this.asking && !this.offers(this.asking.act)) this.asking = null;
    const focus = this.focused();
    this.article.lang = card.language;
    this.article.dataset.state = card.look;
    this.article.setAttribute("aria-label", card.label);
    this.article.classList.toggle("is-old", this.isOld);
    this.article.replaceChildren(...[this.head(), this.notice(), this.body(), this.told(), this.question(), this.foot()].filter(Boolean));
    this.refocus(focus);
    if (before && before.look !== card.look) this.speak();
    this.tick();
  }

  focused() {
    const active = this.article.getRootNode().activeElement;
    return this.article.contains(active) ? { key: active.dataset.key, value: active.value } : null;
  }

  // A redraw must not take the keyboard away from where it is.
  refocus(focus) {
    if (!focus) return;
    const node = this.article.querySelector(`[data-key='${focus.key}']`) ?? this.article;
    if (node.matches("input")) node.value = focus.value;
    node.focus();
  }

  speak() {
    const { card } = this;
    const said = [card.label, plain(card.state, card)];
    if (card.notice) said.push(plain([...card.notice.what, ...card.notice.when], card));
    const sentence = said.join(". ");
    // However many copies of a card a page has, it is heard once.
    if (SPOKEN.get(card.claim) === sentence) return;
    SPOKEN.set(card.claim, sentence);
    this.spoken.lang = card.language;
    this.spoken.setAttribute("role", card.notice ? "alert" : "status");
    this.spoken.textContent = sentence;
  }

  offers(act) {
    const { card } = this;
    return !this.isGone && [...card.head, ...card.foot, ...(card.notice?.buttons ?? [])].some((one) => one.act === act);
  }

  head() {
    const { card } = this;
    const state = words(card.state, card, this.isOld);
    return h("header", { class: "gp-Card-head" },
      icon(this.isOld ? "unlinked" : card.look),
      h("h3", { class: "gp-clip", title: card.name }, card.name),
      h("span", { class: "gp-Claim-state", title: plain(card.state, card) }, state),
      this.dashboards(),
      this.buttons(card.head));
  }

  dashboards() {
    const { card } = this;
    const url = card.dashboards && !this.isGone && dashboardsUrl(card.claim);
    if (!url) return null;
    return h("a", { class: "gp-Button gp-mod-quiet", href: url, target: "_blank", rel: "noopener", title: card.dashboards, "aria-label": card.dashboards, "data-key": "dashboards" },
      icon("dashboards"), h("span", { class: "gp-wide" }, card.dashboards));
  }

  notice() {
    const { card } = this;
    if (!card.notice) return null;
    const { what, when, why, buttons } = card.notice;
    return h("div", { class: "gp-Warning" },
      icon("keep"),
      h("div", {},
        h("p", {}, h("b", {}, words(what, card, this.isOld)), words(when, card, this.isOld)),
        h("p", {}, words(why, card, this.isOld))),
      h("div", { class: "gp-Acts" }, this.buttons(buttons)));
  }

  body() {
    const { card } = this;
    const figures = card.figures.map((figure) => h("div", {},
      h("dt", {}, figure.caption),
      h("dd", {}, words(figure.value, card, this.isOld), " ", h("small", {}, words(figure.note, card, this.isOld)))));
    const rows = card.devices.map((row) => h("tr", { title: row.title },
      h("td", {}, row.place),
      h("td", { class: "wide gp-clip" }, row.model),
      h("td", { class: "gp-num gp-narrow-hide" }, row.memory),
      h("td", { class: "gp-dim" }, row.state)));
    const lines = card.lines.map((line) => h("p", { class: line.is_dim ? "gp-dim" : undefined }, words(line.text, card, this.isOld)));
    const parts = [
      figures.length ? h("dl", { class: "gp-Figures" }, figures) : null,
      rows.length ? h("table", { class: "gp-DeviceTable" }, h("tbody", {}, rows)) : null,
      ...lines,
    ].filter(Boolean);
    return parts.length ? h("div", { class: "gp-Card-body" }, parts) : null;
  }

  // What stands between the reader and a live card.
  told() {
    const { card } = this;
    const trouble = this.model.get("trouble");
    if (this.isGone) return h("p", { class: "gp-Card-told", role: "status" }, icon("unlinked"), h("span", {}, words(card.gone, card, true)));
    if (trouble) return h("p", { class: "gp-Card-told is-bad", role: "alert" }, icon("failed"), h("span", {}, trouble));
    if (this.isSlow) return h("p", { class: "gp-Card-told", role: "status" }, icon("waiting"), h("span", {}, card.busy));
    if (card.note.length) return h("p", { class: "gp-Card-told", role: "status" }, icon("unlinked"), h("span", {}, words(card.note, card, true)));
    return null;
  }

  question() {
    if (!this.asking) return null;
    const { confirm } = this.asking;
    return h("div", { class: "gp-Card-ask", role: "group", "aria-label": confirm.question },
      h("span", {}, confirm.question),
      confirm.reason ? this.reasonField(confirm) : null,
      h("span", { class: "gp-Acts" },
        h("button", { class: "gp-Button", "data-key": "yes", onclick: () => this.answer() }, confirm.yes),
        h("button", { class: "gp-Button", "data-key": "no", onclick: () => this.unask() }, confirm.no)));
  }

  reasonField(confirm) {
    const field = h("input", { class: "gp-Reason", "data-key": "reason", "aria-label": confirm.reason, placeholder: confirm.reason, maxlength: "200" });
    field.value = this.reason;
    field.addEventListener("input", () => { this.reason = field.value; });
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") this.answer(); });
    return field;
  }

  foot() {
    const { card } = this;
    if (this.asking) return null;
    const buttons = this.buttons(card.foot);
    const stepper = this.isGone || !card.stepper ? [] : this.stepper(card.stepper);
    if (!buttons.length && !stepper.length) return null;
    return h("footer", { class: "gp-Card-foot" }, stepper, h("span", { class: "gp-Acts push" }, buttons));
  }

  stepper(stepper) {
    const isBusy = Boolean(this.sent || this.model.get("doing"));
    const to = (workers) => this.press("scale", { workers });
    const typed = (event) => {
      const workers = Number(event.target.value);
      if (Number.isInteger(workers) && workers >= 1 && workers !== stepper.wanted) to(workers);
      else event.target.value = stepper.wanted;
    };
    const step = (key, label, title, sign, workers, isOff) => h("button",
      { "data-key": key, "aria-label": label, title, "aria-disabled": isOff || isBusy ? "true" : undefined, onclick: () => isOff || to(workers) }, sign);
    return [
      h("span", {}, stepper.caption),
      h("span", { class: "gp-Stepper", role: "group", "aria-label": stepper.caption },
        step("fewer", stepper.fewer, stepper.fewer_title, "−", stepper.wanted - 1, stepper.wanted <= 1),
        h("input", { "data-key": "workers", "aria-label": stepper.caption, inputmode: "numeric", value: stepper.wanted, onchange: typed }),
        step("more", stepper.more, stepper.more_title, "+", stepper.wanted + 1, false)),
      h("span", { class: "gp-dim" }, stepper.granted),
    ];
  }

  buttons(buttons) {
    if (this.isGone) return [];
    return buttons.map((button) => {
      const { act } = button;
      const isBusy = this.sent === act || this.model.get("doing") === act;
      const kind = [button.is_primary && "gp-mod-primary", button.is_quiet && "gp-mod-quiet"].filter(Boolean);
      return h("button", {
        class: ["gp-Button", ...kind].join(" "),
        title: button.title,
        "data-key": act,
        "aria-disabled": button.is_off || isBusy ? "true" : undefined,
        "aria-busy": isBusy ? "true" : undefined,
        onclick: () => button.is_off || (button.confirm ? this.ask(button) : this.press(act)),
      }, button.label);
    });
  }

  // Times change by the minute, and only where somebody can see them.
  tick() {
    clearTimeout(this.timer);
    const times = [...this.article.querySelectorAll("time")].filter((node) => node.moment);
    if (document.hidden || !times.length) return;
    for (const node of times) {
      const now = written(node.moment, new Date(), this.card);
      if (node.textContent !== now) node.textContent = now;
    }
    this.timer = setTimeout(() => this.tick(), MINUTE - (Date.now() % MINUTE));
  }
}

function render({ model, el }) {
  const view = new CardView(model, el);
  return () => view.close();
}

export default { render };
