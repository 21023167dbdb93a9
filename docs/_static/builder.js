// The page "Script builder": reads builder-table.js, which benchmarks/script_builder.py makes.
(() => {
  "use strict";

  const KINDS = {
    number: { name: "a number", hint: "0, 100" },
    amount: { name: "an amount (log scale)", hint: "1, 1000000" },
    category: { name: "a category", hint: "yes, no, unknown" },
    boolean: { name: "true or false", hint: "" },
    date: { name: "a date", hint: "2020-01-01, 2030-01-01" },
    drop: { name: "not used", hint: "" },
  };
  const START = {
    columns: [{ name: "", kind: "number", values: "", missing: false }],
    target: "",
    task: "classifier",
    labels: "",
    file: "my_table.csv",
    n: "10000",
    epsilon: "1",
  };
  const EXAMPLE = {
    columns: [
      { name: "age", kind: "number", values: "0, 100", missing: true },
      { name: "ward", kind: "category", values: "surgery, medicine, children", missing: true },
      { name: "insured", kind: "boolean", values: "", missing: false },
      { name: "admitted", kind: "date", values: "2020-01-01, 2030-01-01", missing: false },
      { name: "cost", kind: "amount", values: "10, 1000000", missing: false },
      { name: "name", kind: "drop", values: "", missing: false },
    ],
    target: "stay",
    task: "classifier",
    labels: "short, long",
    file: "visits.csv",
    n: "20000",
    epsilon: "1",
  };
  const FAMILIES = { linear: "a linear model", boosting: "boosting", net: "a neural net" };
  const HELD_OUT = 0.2;

  // Reading what was typed -------------------------------------------------------------------

  // The parts of a list; quotes keep commas and spaces.
  function parts(text) {
    const found = [];
    const pattern = /\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/gy;
    while (pattern.lastIndex < text.length) {
      const match = pattern.exec(text);
      if (!match) break;
      const quoted = match[1] !== undefined;
      const part = quoted ? match[1].replace(/""/g, '"') : match[2].trim();
      if (quoted || part) found.push({ part, quoted });
    }
    return found;
  }

  function isNumber({ part, quoted }) {
    return !quoted && /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(part);
  }

  // The first line of a file as names: separated by the mark that is most frequent.
  function namesOf(line) {
    const marks = [",", ";", "\t"];
    const count = (mark) => line.split(mark).length;
    const mark = marks.reduce((best, one) => (count(one) > count(best) ? one : best));
    const commas = mark === "," ? line : line.replaceAll(mark, ",");
    return parts(commas.replace(/^\uFEFF/, "").trim()).map(({ part }) => part);
  }

  function isDate({ part }) {
    return /^\d{4}-\d{2}-\d{2}$/.test(part) && !Number.isNaN(Date.parse(part));
  }

  function rangeOf(column, isProper, example, valueOf) {
    const found = parts(column.values);
    const [low, high] = found.map(({ part }) => valueOf(part));
    if (found.length !== 2 || !found.every(isProper) || !(low < high)) {
      throw new Error(`${column.name}: write the smallest and the largest value, such as "${example}".`);
    }
    return found.map(({ part }) => part);
  }

  // One entry of the schema, in the format of Schema.to_json.
  function entryOf(column) {
    const missing = column.missing ? { missing: true } : {};
    switch (column.kind) {
      case "drop":
        return "drop";
      case "boolean":
        return { type: "boolean", ...missing };
      case "date":
        return { range: rangeOf(column, isDate, KINDS.date.hint, Date.parse), ...missing };
      case "category": {
        const found = parts(column.values);
        const names = found.map(({ part }) => part);
        if (!names.length) throw new Error(`${column.name}: write its categories, such as "${KINDS.category.hint}".`);
        if (new Set(names).size < names.length) throw new Error(`${column.name}: a category occurs twice.`);
        return { categories: valuesOf(found), other: true, ...missing };
      }
      default: {
        const range = rangeOf(column, isNumber, KINDS[column.kind].hint, Number).map(Number);
        const isLog = column.kind === "amount";
        if (isLog && range[0] <= 0) throw new Error(`${column.name}: an amount on a log scale must be above 0.`);
        return { range, ...(isLog ? { scale: "log" } : {}), ...missing };
      }
    }
  }

  // Numbers stay numbers only if all of them are.
  function valuesOf(found) {
    return found.every(isNumber) ? found.map(({ part }) => Number(part)) : found.map(({ part }) => part);
  }

  // The schema, and sentences about what is not right yet.
  function read(state) {
    const problems = [];
    const columns = {};
    const names = new Set();
    for (const column of state.columns) {
      if (!column.name) {
        problems.push("A column has no name.");
      } else if (names.has(column.name)) {
        problems.push(`${column.name}: two columns have this name.`);
      } else {
        names.add(column.name);
        try {
          columns[column.name] = entryOf(column);
        } catch (error) {
          problems.push(error.message);
        }
      }
    }
    if (!problems.length && Object.values(columns).every((entry) => entry === "drop")) {
      problems.push("Describe at least one column that is used.");
    }
    const target = { name: state.target };
    if (!state.target) problems.push("Name the column to predict.");
    if (names.has(state.target)) problems.push(`${state.target}: the column to predict cannot be a feature.`);
    const found = parts(state.labels);
    if (state.task === "classifier") {
      target.categories = valuesOf(found);
      if (new Set(found.map(({ part }) => part)).size < 2) problems.push("Write at least two labels.");
    } else {
      try {
        target.range = rangeOf({ name: "Range of the target", values: state.labels }, isNumber, "0, 100", Number).map(Number);
      } catch (error) {
        problems.push(error.message);
      }
    }
    if (!state.file) problems.push("Name your file.");
    const n = Number(state.n);
    if (!(Number.isInteger(n) && n >= 10)) problems.push("The number of rows must be a whole number of at least 10.");
    const epsilon = Number(state.epsilon);
    if (!(epsilon > 0 && epsilon <= 100)) problems.push("ε must be above 0 and at most 100.");
    return { schema: { columns, target }, problems, n, epsilon };
  }

  // Figures ----------------------------------------------------------------------------------

  // The standard normal distribution function, by its continued fraction and its series.
  function logPhi(x) {
    if (x > 0) return Math.log1p(-Math.exp(logPhi(-x)));
    const density = -x * x / 2 - Math.log(2 * Math.PI) / 2;
    if (x > -3) {
      let term = x;
      let sum = x;
      for (let k = 1; k < 100; k++) sum += term *= (x * x) / (2 * k + 1);
      return Math.log(0.5 + Math.exp(density) * sum);
    }
    let tail = -x;
    for (let k = 100; k > 0; k--) tail = -x + k / tail;
    return density - Math.log(tail);
  }

  // delta of a Gaussian release of shift mu, at epsilon.
  function deltaOf(mu, epsilon) {
    const first = logPhi(mu / 2 - epsilon / mu);
    const second = epsilon + logPhi(-mu / 2 - epsilon / mu);
    return Math.exp(first) * -Math.expm1(Math.min(second - first, 0));
  }

  // The noise of one Gaussian release that costs (epsilon, delta), in contributions of a record.
  function noiseOf(epsilon, delta) {
    let low = 1e-6;
    let high = 1e3;
    for (let i = 0; i < 200; i++) {
      const middle = Math.sqrt(low * high);
      if (deltaOf(1 / middle, epsilon) > delta) low = middle;
      else high = middle;
    }
    return high;
  }

  function fittedRows(n) {
    return n - Math.ceil(n * HELD_OUT);
  }

  // The power of ten at or below 1 / (10 n), as text.
  function deltaFor(n) {
    return `1e${Math.floor(-Math.log10(10 * n) + 1e-9)}`;
  }

  function familyOf(table, task, n, noise, columns, classes = 2) {
    const rule = table.rules[task];
    const ofPair = ((n / noise) * 2) / classes;
    const is = (family) => ofPair >= Math.max(rule.others[family], rule.per_column * columns);
    if (n / noise < rule.weakest) return ["linear"];
    return [rule.first, ...(n < rule.records ? [] : Object.keys(rule.others).filter(is))];
  }

  // Points lost, at the nearest simulated setting that is not easier; null below all of them.
  function lostPoints(table, task, n, columns, epsilon) {
    if (!table.lost[task]) return null;
    const last = (nodes, value) => nodes.findLastIndex((node) => node <= value * (1 + 1e-9));
    const first = table.columns.findIndex((node) => node >= columns);
    const place = [last(table.samples, n), first < 0 ? table.columns.length - 1 : first, last(table.epsilons, epsilon)];
    if (place[0] < 0 || place[2] < 0) return null;
    return table.lost[task][place[0]][place[1]][place[2]];
  }

  function rounded(number, digits = 2) {
    return Number(number.toPrecision(digits)).toLocaleString("en-US", { maximumSignificantDigits: digits });
  }

  function factsOf(table, task, asked) {
    const n = fittedRows(asked.n);
    const delta = deltaFor(n);
    const noise = noiseOf(asked.epsilon, Number(delta));
    const used = Object.values(asked.schema.columns).filter((entry) => entry !== "drop").length;
    const families = familyOf(table, task, n, noise, used, asked.schema.target.categories?.length || 2).map((name) => FAMILIES[name]);
    const lost = lostPoints(table, task, n, used, asked.epsilon);
    const unit = task === "classifier" ? "points of accuracy" : "points of R²";
    const answer = `The script costs ε = ${asked.epsilon} at δ = ${delta}, in all.`;
    const facts = [
      families.length === 1
        ? `Model: ${families[0]}, in one fit.`
        : `Models: ${families.slice(0, -1).join(", ")} and ${families.at(-1)} are compared by noisy scores.`,
      `Noise: as in a count with a standard deviation of ${rounded(noise)} records, where ${n.toLocaleString("en-US")} are counted. All steps of the fit share it.`,
    ];
    if (!table.lost[task]) {
      facts.push("Expected loss: simulated for labels only. The score of the script says how good the model is.");
    } else if (lost === null) {
      facts.push("Expected loss: not simulated for so few rows, or so small an ε. Expect a model that learns little.");
    } else {
      facts.push(`Expected loss: about ${lost.toFixed(1)} ${unit}, compared with scikit-learn without privacy, in simulations.`);
    }
    if (asked.epsilon > 10) facts.push("An ε above 10 protects little: choose 1, if you can.");
    return { answer, facts, delta };
  }

  // The script -------------------------------------------------------------------------------

  // A value of JSON in Python's words.
  function python(value) {
    if (value === true) return "True";
    if (value === false) return "False";
    if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
    if (value !== null && typeof value === "object") {
      return `{${Object.entries(value).map(([key, one]) => `${python(key)}: ${python(one)}`).join(", ")}}`;
    }
    return JSON.stringify(value);
  }

  // What each cell of the notebook contains; the script joins them.
  function cellsOf(state, asked, delta) {
    const { columns, target } = asked.schema;
    const lines = Object.entries(columns).map(([name, entry]) => `        ${python(name)}: ${python(entry)},`);
    return [
      ["import pandas as pd", "from sklearn.model_selection import train_test_split", "", "from skdptune import Schema, make_private_pipeline"],
      ["# What is public about the table. Nothing here may come from the records.", "schema = Schema(", "    {", ...lines, "    },", `    target=${python(target)},`, ")"],
      [
        `table = pd.read_csv(${python(state.file)})`,
        `y = table.pop(${python(target.name)})`,
        `X, X_test, y, y_test = train_test_split(table, y, test_size=${HELD_OUT}, random_state=0)`,
      ],
      [
        "# One budget covers everything: the choice of the model, its fit, and the scores.",
        `model = make_private_pipeline(${python(state.task)}, schema, epsilon=${asked.epsilon}, delta=${delta})`,
        "print(model.plan(*X.shape))",
      ],
      ["model.fit(X, y)", "print(model.privacy_)"],
      ["# This score is exact, and no budget covers it: do not publish it.", "print(model.score(X_test, y_test))"],
    ].map((cell) => cell.join("\n"));
  }

  function scriptOf(state, asked, delta) {
    return `${cellsOf(state, asked, delta).join("\n\n")}\n`;
  }

  function notebookOf(state, asked, delta) {
    const cells = cellsOf(state, asked, delta).map((source, i) => ({
      cell_type: "code",
      id: `cell-${i}`,
      metadata: {},
      execution_count: null,
      outputs: [],
      source,
    }));
    const kernelspec = { display_name: "Python 3", language: "python", name: "python3" };
    return { cells, metadata: { kernelspec }, nbformat: 4, nbformat_minor: 5 };
  }

  if (typeof module !== "undefined") {
    module.exports = { EXAMPLE, START, deltaFor, factsOf, familyOf, lostPoints, namesOf, noiseOf, notebookOf, parts, read, scriptOf };
  }

  // The page ---------------------------------------------------------------------------------

  const page = typeof document === "undefined" ? null : document.getElementById("builder");
  const table = globalThis.builderTable;
  if (!page || !table) return;

  const find = (name) => page.querySelector(`[data-show=${name}]`);
  let state = structuredClone(START);

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name in made) made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function columnRow(column, i) {
    const words = (part) => `${part} of column ${i + 1}`;
    const options = Object.entries(KINDS).map(([value, { name }]) =>
      element("option", { value, selected: value === column.kind }, name),
    );
    const hint = KINDS[column.kind].hint;
    const cells = [
      element("input", { type: "text", value: column.name, "aria-label": words("Name"), "data-part": "name", spellcheck: false }),
      element("select", { "aria-label": words("Content"), "data-part": "kind" }, ...options),
      element("input", { type: "text", value: column.values, placeholder: hint, disabled: !hint, "aria-label": words("Range or categories"), "data-part": "values", spellcheck: false }),
      element("input", { type: "checkbox", checked: column.missing, disabled: column.kind === "drop", "aria-label": words("Missing values"), "data-part": "missing" }),
      element("button", { type: "button", "aria-label": `Remove column ${i + 1}`, "data-do": "remove" }, "✕"),
    ];
    return element("tr", { "data-place": String(i) }, ...cells.map((cell) => element("td", {}, cell)));
  }

  function showColumns() {
    find("columns").replaceChildren(...state.columns.map(columnRow));
  }

  function showFields() {
    for (const name of ["target", "task", "labels", "file", "n", "epsilon"]) {
      page.querySelector(`#builder-${name}`).value = state[name];
    }
  }

  function isUntouched() {
    return JSON.stringify(state) === JSON.stringify(START);
  }

  function showResult() {
    const isClassifier = state.task === "classifier";
    find("labels-word").textContent = isClassifier ? "Labels, separated by commas" : "Smallest and largest value";
    page.querySelector("#builder-labels").placeholder = isClassifier ? "yes, no" : "0, 100";
    const asked = read(state);
    const isReady = !asked.problems.length;
    const problems = isUntouched() ? ["Describe the columns, or fill in the example."] : asked.problems;
    find("problems").replaceChildren(...problems.map((text) => element("li", {}, text)));
    find("made").hidden = !isReady;
    find("answer").hidden = find("facts").hidden = !isReady;
    find("done").textContent = "";
    if (!isReady) return;
    const { answer, facts, delta } = factsOf(table, state.task, asked);
    find("answer").textContent = answer;
    find("facts").replaceChildren(...facts.map((text) => element("li", {}, text)));
    find("script").textContent = scriptOf(state, asked, delta);
  }

  function showAll() {
    showColumns();
    showFields();
    showResult();
  }

  function download(name, type, text) {
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const ACTIONS = {
    add() {
      state.columns.push({ ...START.columns[0] });
      showAll();
      page.querySelector("tr:last-child [data-part=name]").focus();
    },
    remove(target) {
      state.columns.splice(Number(target.closest("tr").dataset.place), 1);
      showAll();
    },
    example() {
      state = structuredClone(EXAMPLE);
      showAll();
    },
    async copy() {
      try {
        await navigator.clipboard.writeText(find("script").textContent);
        find("done").textContent = "Copied.";
      } catch {
        getSelection().selectAllChildren(find("script"));
        find("done").textContent = "The script is selected: press Ctrl+C.";
      }
    },
    notebook() {
      const asked = read(state);
      download("private_model.ipynb", "application/json", JSON.stringify(notebookOf(state, asked, deltaFor(fittedRows(asked.n))), null, 1));
    },
    schema() {
      download("schema.json", "application/json", JSON.stringify(read(state).schema, null, 2));
    },
  };

  page.addEventListener("click", ({ target }) => {
    const name = target.closest("[data-do]")?.dataset.do;
    if (name) ACTIONS[name](target);
  });

  page.addEventListener("input", ({ target }) => {
    const row = target.closest("tr");
    if (row && target.dataset.part) {
      const column = state.columns[Number(row.dataset.place)];
      column[target.dataset.part] = target.type === "checkbox" ? target.checked : target.value.trimStart();
      if (target.dataset.part === "kind") showColumns();
      showResult();
    } else if (Object.hasOwn(START, target.id.replace("builder-", "")) && target.type !== "file") {
      state[target.id.replace("builder-", "")] = target.value.trim();
      showResult();
    }
  });

  // Only the first line of the file is read, and it stays in the browser.
  page.querySelector("#builder-header").addEventListener("change", async ({ target }) => {
    const [file] = target.files;
    if (!file) return;
    const [line] = (await file.slice(0, 65536).text()).split(/\r?\n/);
    const names = namesOf(line);
    state.columns = names.filter((name) => name !== state.target).map((name) => ({ ...START.columns[0], name }));
    state.file = file.name;
    showAll();
  });

  page.addEventListener("submit", (event) => event.preventDefault());
  showAll();
  page.querySelector("form").hidden = false;
  find("result").hidden = false;
})();
