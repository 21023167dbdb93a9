// The page "What tuning costs": reads explorer-table.js, which benchmarks/explorer.py makes.
(() => {
  "use strict";

  // In the order in which they are shown.
  const WAYS = [
    { key: "untuned", name: "no tuning at all", bound: "" },
    { key: "composition", name: "publish all runs", bound: "naive composition" },
    { key: "rdp", name: "best run", bound: "Rényi, Papernot–Steinke 2022" },
    { key: "profile", name: "best run", bound: "profile, Koskela et al. 2024" },
    { key: "envelope", name: "best run", bound: "envelope, skdptune", ours: true },
    { key: "part_rdp", name: "search on 1/20", bound: "Rényi, Koskela–Kulkarni 2023" },
    { key: "part", name: "search on 1/20", bound: "envelope, skdptune", ours: true },
  ];
  // Of Rényi bounds, whose curves have kinks, only the nearest epsilons count.
  const KINKED = ["rdp", "part_rdp"];
  // Their orders end at 128: where epsilon is near log(1 / delta) / 127 they grow without limit.
  const LEAST_KINKED = 3 / 127;
  const PART = 1 / 20;
  const AXES = ["rate", "epochs", "runs", "delta", "epsilon"];
  const DELTAS = { "n^-1.1": (n) => n ** -1.1, "1/(10n)": (n) => 1 / (10 * n) };
  const START = { n: 32561, rate: 0.05, steps: 400, runs: 20, eps: 1, delta: "1e-5" };

  // Reading the table ------------------------------------------------------------------------

  function unpacked(entry) {
    if (!entry.numbers) {
      const bytes = Uint8Array.from(atob(entry.values), (letter) => letter.charCodeAt(0));
      const view = new DataView(bytes.buffer);
      entry.numbers = Array.from(
        { length: bytes.length / 2 },
        (_, i) => entry.lowest + entry.step * view.getUint16(2 * i, true),
      );
    }
    return entry.numbers;
  }

  // What each node counts in the polynomial through the nearest ones; the nodes are in order.
  function weights(nodes, place, count) {
    const before = nodes.filter((node) => node < place).length;
    const first = Math.min(Math.max(before - Math.floor(count / 2), 0), nodes.length - count);
    return nodes.map((node, i) => {
      if (i < first || i >= first + count) return 0;
      return nodes.reduce((all, other, j) => {
        const isOther = i !== j && j >= first && j < first + count;
        return isOther ? (all * (place - other)) / (node - other) : all;
      }, 1);
    });
  }

  // The noise multiplier at which DP-SGD is nearly a Gaussian mechanism of this mu.
  function noiseOf(logMu, rate, steps) {
    return 1 / Math.sqrt(Math.log1p(Math.exp(2 * logMu) / (rate * rate * steps)));
  }

  // The noise that the table says, without margin.
  function interpolated(table, way, setting) {
    const entry = table.ways[way];
    const places = { ...setting, epochs: setting.rate * setting.steps };
    let values = unpacked(entry);
    for (const name of AXES) {
      if (name === "runs" && way === "untuned") continue;
      const nodes = (entry[name] || table.axes[name]).map(Math.log);
      const isLocal = name === "epsilon" && KINKED.includes(way);
      const counts = weights(nodes, Math.log(places[name]), isLocal ? 4 : nodes.length);
      const width = values.length / nodes.length;
      values = Array.from({ length: width }, (_, i) =>
        counts.reduce((sum, count, node) => sum + count * values[node * width + i], 0),
      );
    }
    return noiseOf(values[0], setting.rate, setting.steps);
  }

  // With the margin that was measured.
  function shown(table, way, setting) {
    const noise = interpolated(table, way, setting);
    const band = table.bands.filter((least) => noise >= least).length;
    return noise * (1 + table.margins[KINKED.includes(way) ? way : "others"][band]);
  }

  // Requirements of all ways of tuning, for n records: noise relative to the rows, and work.
  function rows(table, n, setting) {
    const all = { ...setting, steps: setting.steps * Math.ceil(setting.runs) };
    const found = WAYS.map((way) => {
      const isAll = way.key === "composition";
      const [key, place] = isAll ? ["untuned", all] : [way.key, setting];
      const share = table.ways[key].share;
      const fits = way.key === "untuned" ? 1 : setting.runs;
      const work = share < 1 ? setting.runs * PART + 1 - PART : fits;
      return {
        ...way,
        isCovered: !KINKED.includes(way.key) || setting.epsilon >= LEAST_KINKED * Math.log(1 / setting.delta),
        noise: shown(table, key, place) / share,
        plain: interpolated(table, key, place) / share,
        fits: share < 1 ? `${fits} + 1` : `${fits}`,
        gradients: work * n * setting.rate * setting.steps,
      };
    });
    return found.map((row) => ({ ...row, ratio: row.plain / found[0].plain, mean: row.noise / (n * setting.rate) }));
  }

  // Figures as text --------------------------------------------------------------------------

  // Rounded up: noise is never shown below what was computed.
  function upwards(value, digits = 3) {
    const unit = 10 ** (Math.floor(Math.log10(value)) + 1 - digits);
    const up = Math.ceil(value / unit - 1e-9) * unit;
    if (up < 1e-3) return up.toExponential(digits - 1);
    return up.toFixed(Math.max(0, -Math.round(Math.log10(unit))));
  }

  function thousands(number, separator) {
    return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, separator);
  }

  function million(number) {
    if (number < 9.995e5) return thousands(rounded(number, 3), ",");
    const [size, name] = number < 9.995e8 ? [1e6, "million"] : [1e9, "billion"];
    return `${(number / size).toPrecision(3)} ${name}`;
  }

  // A comparison of the noise with that of another fit.
  function compared(ratio) {
    if (ratio >= 1.995) return `${ratio.toFixed(1)} times the noise of`;
    const change = 100 * (ratio - 1);
    if (Math.abs(change) < 0.05) return "the same noise as";
    return `${Math.abs(change).toFixed(1)}\u00a0% ${change > 0 ? "more" : "less"} noise than`;
  }

  // What a geometric number of runs of this mean exceeds in one case of a hundred.
  function mostRuns(mean) {
    return Math.ceil(Math.log(0.01) / Math.log1p(-1 / mean) - 1e-9);
  }

  // The shortest number of epochs of which the library makes this number of steps.
  function epochsFor(rate, steps) {
    for (let digits = 0; digits < 12; digits++) {
      const text = (Math.floor(rate * steps * 10 ** digits + 1e-9) / 10 ** digits).toFixed(digits);
      if (Number(text) > rate * (steps - 0.9)) return text;
    }
    return String(rate * steps);
  }

  // Settings ---------------------------------------------------------------------------------

  function rounded(value, digits) {
    return Number(value.toPrecision(digits));
  }

  function within(value, lower, upper) {
    return Math.min(Math.max(value, lower), upper);
  }

  function ends(axis) {
    return [Math.min(...axis), Math.max(...axis)];
  }

  // What each number may be; that of steps depends on the rate.
  function limits(table, rate) {
    const [least, most] = ends(table.axes.epochs);
    return {
      n: [1000, 1e7],
      rate: ends(table.axes.rate),
      steps: [Math.ceil(least / rate - 1e-9), Math.floor(most / rate + 1e-9)],
      runs: ends(table.axes.runs),
      eps: ends(table.axes.epsilon),
    };
  }

  const WHOLE = { n: true, steps: true, runs: true };

  // Any numbers and words, from a link or from a field, as a setting that the table covers.
  function tidied(table, wanted) {
    const state = { ...START };
    for (const name of ["n", "rate", "steps", "runs", "eps"]) {
      const value = Number(wanted[name]);
      if (Number.isFinite(value) && value > 0) state[name] = value;
      state[name] = within(state[name], ...limits(table, state.rate)[name]);
      state[name] = WHOLE[name] ? Math.round(state[name]) : rounded(state[name], 3);
    }
    const delta = String(wanted.delta);
    const [lower, upper] = ends(table.axes.delta);
    const isKnown = Object.hasOwn(DELTAS, delta) || (Number(delta) >= lower && Number(delta) <= upper);
    if (isKnown) state.delta = delta;
    return state;
  }

  // A delta that depends on n is rounded down, and kept within the table.
  function deltaOf(table, state) {
    if (!Object.hasOwn(DELTAS, state.delta)) return Number(state.delta);
    const exact = DELTAS[state.delta](state.n);
    const unit = 10 ** (Math.floor(Math.log10(exact)) - 2);
    return within(rounded(Math.floor(exact / unit + 1e-9) * unit, 3), ...ends(table.axes.delta));
  }

  function settingOf(table, state) {
    const { rate, steps, runs, eps } = state;
    return { rate, steps, runs, epsilon: eps, delta: deltaOf(table, state) };
  }

  // What the example code has in place of its numbers.
  function codeOf(table, state) {
    return {
      n: thousands(state.n, "_"),
      rate: String(state.rate),
      steps: thousands(state.steps, "_"),
      epochs: epochsFor(state.rate, state.steps),
      runs: String(state.runs),
      epsilon: Number.isInteger(state.eps) ? state.eps.toFixed(1) : String(state.eps),
      delta: deltaOf(table, state).toExponential(),
    };
  }

  const api = { WAYS, codeOf, deltaOf, epochsFor, interpolated, rows, settingOf, shown, tidied, upwards };
  if (typeof module !== "undefined") module.exports = api;
  if (typeof document === "undefined") return;

  // The page ---------------------------------------------------------------------------------

  const table = globalThis.tuningTable;
  const page = document.getElementById("explorer");
  if (!page || !table) return;
  const find = (name) => page.querySelector(`[data-show="${name}"]`);
  const SLIDES = 400;
  let state = tidied(table, Object.fromEntries(new URLSearchParams(location.hash.slice(1))));

  function element(name, attributes, ...children) {
    const isPicture = ["svg", "rect", "text", "tspan", "line"].includes(name);
    const made = isPicture ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function showFields() {
    const allowed = limits(table, state.rate);
    for (const [name, [lower, upper]] of Object.entries(allowed)) {
      const slider = document.getElementById(`explorer-${name}-slider`);
      const field = document.getElementById(`explorer-${name}`);
      slider.max = SLIDES;
      const place = (SLIDES * Math.log(state[name] / lower)) / Math.log(upper / lower);
      // While it is moved it stays where it is.
      if (valueAt(name, Number(slider.value)) !== state[name]) slider.value = Math.round(place);
      slider.setAttribute("aria-valuetext", String(state[name]));
      field.min = lower;
      field.max = upper;
      field.value = state[name];
    }
    const choice = document.getElementById("explorer-delta");
    choice.value = state.delta;
    if (choice.value !== state.delta) {
      choice.append(element("option", { value: state.delta }, state.delta));
      choice.value = state.delta;
    }
  }

  function valueAt(name, place) {
    const [lower, upper] = limits(table, state.rate)[name];
    const value = lower * (upper / lower) ** (place / SLIDES);
    return within(WHOLE[name] ? Math.round(rounded(value, 3)) : rounded(value, 3), lower, upper);
  }

  function showChart(found) {
    found = found.filter((row) => row.isCovered);
    const most = Math.max(...found.map((row) => row.noise));
    const share = (value) => `${((82 * value) / most).toFixed(2)}%`;
    const none = share(found[0].noise);
    const height = 46;
    const parts = found.flatMap((row, i) => {
      const top = i * height;
      const name = element("tspan", { class: "explorer-name" }, row.name);
      const bound = element("tspan", { class: "explorer-bound" }, row.bound && ` · ${row.bound}`);
      const line = { x1: none, x2: none, y1: top + 20, y2: top + 38, class: "explorer-line" };
      return [
        element("text", { x: 0, y: top + 16 }, name, bound),
        element("rect", { x: 0, y: top + 22, width: share(row.noise), height: 14, rx: 2, class: row.ours ? "explorer-ours" : "explorer-other" }),
        element("text", { x: share(row.noise), y: top + 34, dx: 6, class: "explorer-value" }, upwards(row.noise)),
        element("line", line),
      ];
    });
    const said = found.map((row) => `${row.name} ${row.bound}: ${upwards(row.noise)}`).join("; ");
    const picture = element("svg", { width: "100%", height: found.length * height, role: "img", "aria-label": `Noise relative to the rows of the fit. ${said}` }, ...parts);
    find("chart").replaceChildren(picture);
  }

  function showTable(found) {
    const lines = found.map((row) => {
      const name = row.bound ? `${row.name} (${row.bound})` : row.name;
      const figures = [upwards(row.noise), row.ratio.toFixed(2), upwards(row.mean)].map((figure) => (row.isCovered ? figure : "–"));
      const cells = [...figures, row.fits, million(row.gradients)];
      const line = element("tr", row.ours ? { class: "explorer-bold" } : {}, element("th", { scope: "row" }, name));
      line.append(...cells.map((cell) => element("td", {}, cell)));
      line.dataset.way = row.key;
      return line;
    });
    find("rows").replaceChildren(...lines);
  }

  function showWords(found, setting) {
    const by = Object.fromEntries(found.map((row) => [row.key, row]));
    find("answer").textContent =
      `Tuning over about ${state.runs} candidates on a twentieth of the records takes ` +
      `${compared(by.part.ratio)} one untuned fit. Publishing every run would take ${compared(by.composition.ratio)} that fit.`;
    find("most").textContent = thousands(mostRuns(state.runs), ",");
    const notes = [`δ = ${setting.delta.toExponential()}; ${epochsFor(state.rate, state.steps)} epochs; batches of about ${thousands(state.n * state.rate, ",")} records.`];
    if (setting.delta >= 1 / state.n) notes.push("δ is not below 1/n: a release that shows a whole record would be allowed (SKP004).");
    if (state.n * PART < 1000) notes.push(`A twentieth of the records is about ${Math.round(state.n * PART)}: by default the search takes a larger part, or tunes on all.`);
    if (!found.every((row) => row.isCovered)) notes.push("For such a small ε, the table has no Rényi bounds, since their orders are too few; the code below has them.");
    find("notes").textContent = notes.join(" ");
  }

  function show() {
    const setting = settingOf(table, state);
    const found = rows(table, state.n, setting);
    showFields();
    showChart(found);
    showTable(found);
    showWords(found, setting);
    showCode();
  }

  // A block of code names its numbers, in their order; those of "-" stay.
  function showCode() {
    const texts = codeOf(table, state);
    for (const block of document.querySelectorAll("[data-code]")) {
      const numbers = block.querySelectorAll(".mi, .mf");
      block.dataset.code.split(" ").forEach((name, i) => {
        if (name !== "-") numbers[i].textContent = texts[name];
      });
    }
  }

  function change(part) {
    state = tidied(table, { ...state, ...part });
    show();
    history.replaceState(null, "", `#${new URLSearchParams(state)}`);
  }

  page.addEventListener("input", ({ target }) => {
    const name = target.id.replace(/^explorer-/, "");
    if (name.endsWith("-slider")) {
      const number = name.replace("-slider", "");
      change({ [number]: valueAt(number, Number(target.value)) });
    }
  });
  // A number counts once it is finished, not at its first digit.
  page.addEventListener("change", ({ target }) => {
    const name = target.id.replace(/^explorer-/, "");
    if (!name.endsWith("-slider") && Object.hasOwn(START, name)) change({ [name]: target.value });
  });
  page.addEventListener("submit", (event) => event.preventDefault());
  page.addEventListener("reset", (event) => {
    event.preventDefault();
    change(START);
  });
  window.addEventListener("hashchange", () => {
    state = tidied(table, Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
    show();
  });

  show();
  document.getElementById("explorer-static").hidden = true;
  page.querySelector("form").hidden = false;
  page.querySelector("[data-show=figures]").hidden = false;
})();
