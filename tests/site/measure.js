// What the tests of the site measure in a page: overflow, and the contrast of its text.
globalThis.siteMeasures = (() => {
  const canvas = new OffscreenCanvas(1, 1);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const colours = new Map();

  // Any CSS colour as [red, green, blue, alpha], all but alpha from 0 to 255.
  function parse(colour) {
    if (!colours.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
      colours.set(colour, [red, green, blue, alpha / 255]);
    }
    return colours.get(colour);
  }

  function over([r, g, b, alpha], under) {
    return [r, g, b].map((each, i) => each * alpha + under[i] * (1 - alpha));
  }

  // A function of an element that asks its parent as well: each element once in a measurement.
  function remembered(make) {
    const known = new Map();
    const of = (element) => {
      if (!known.has(element)) known.set(element, make(element, of));
      return known.get(element);
    };
    return of;
  }

  // What is behind an element's text: its own and its ancestors' backgrounds; null for pictures.
  const backgrounds = () => remembered((element, of) => {
    if (element === null) return [255, 255, 255];
    const style = getComputedStyle(element);
    if (style.backgroundImage !== "none") return null;
    const colour = parse(style.backgroundColor);
    const under = colour[3] === 1 ? [255, 255, 255] : of(element.parentElement);
    return under === null || colour[3] === 0 ? under : over(colour, under);
  });

  const opacities = () => remembered((element, of) => element === null
    ? 1 : Number(getComputedStyle(element).opacity) * of(element.parentElement));

  function luminance(colour) {
    const [r, g, b] = colour.map((each) => {
      const part = each / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  function contrast(one, other) {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  }

  function describe(element) {
    const classes = [...element.classList].map((each) => `.${each}`).join("");
    const parent = element.parentElement;
    return `${parent ? parent.localName : ""} > ${element.localName}${classes}`;
  }

  // Text below the contrast that WCAG 2 asks for at level AA: once for each kind of element.
  function lowContrast(root = document.body) {
    const found = new Map(), behind = backgrounds(), opacity = opacities();
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    let checked = 0;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || element.closest("script, style, noscript, [disabled]")) continue;
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const style = getComputedStyle(element);
      const under = behind(element);
      if (under === null) continue;
      const [r, g, b, alpha] = parse(style.fill !== "rgb(0, 0, 0)" && element.closest("svg")
        ? style.fill : style.color);
      const ratio = contrast(over([r, g, b, alpha * opacity(element)], under), under);
      const size = parseFloat(style.fontSize);
      const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      checked += 1;
      if (ratio < (isLarge ? 3 : 4.5) - 0.005) {
        const key = `${describe(element)} ${ratio.toFixed(2)}`;
        if (!found.has(key)) found.set(key, node.data.trim().slice(0, 40));
      }
    }
    return { checked, found: [...found].map(([key, text]) => `${key}: ${text}`) };
  }

  // Elements that make the page itself scroll sideways, or that are cut off at its edge.
  function overflow() {
    const width = document.documentElement.clientWidth;
    const excess = document.documentElement.scrollWidth - width;
    const found = excess > 0 ? [`the page is ${excess} px too wide`] : [];
    // The part with the page's title may scroll in place of the page.
    for (let each = document.querySelector("h1"); each; each = each.parentElement) {
      const more = each.scrollWidth - each.clientWidth;
      if (more > 1 && getComputedStyle(each).overflowX !== "visible") {
        found.push(`${describe(each)} is ${more} px too wide`);
      }
    }
    const scrolls = (each) => each && each !== document.body
      && (["auto", "scroll", "hidden"].includes(getComputedStyle(each).overflowX)
        || scrolls(each.parentElement));
    for (const element of document.body.querySelectorAll("*")) {
      const right = element.getBoundingClientRect().right + window.scrollX;
      const isSeen = right > width + 1
        && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
      if (isSeen && !scrolls(element.parentElement) && found.length < 5) {
        found.push(`${describe(element)} ends at ${Math.round(right)} px`);
      }
    }
    return found;
  }

  return { lowContrast, overflow };
})();
