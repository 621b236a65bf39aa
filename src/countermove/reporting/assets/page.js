"use strict";
(function () {
  const root = document.documentElement;
  const PAPER = 640; // pixels of a figure on paper: fits A4 and Letter
  const NARROW = 480;
  const STORED = 600; // a stored figure is not narrower than this: it scrolls in its box
  const settings = { displayModeBar: false, responsive: false, scrollZoom: false, doubleClick: false };
  let printing = false;
  let ready = false; // whether the plotting script has run

  function role(name) {
    return getComputedStyle(root).getPropertyValue("--" + name).trim();
  }
  // Colours are written var:<name>; the theme says what they are.
  function themed(node) {
    if (typeof node === "string") return node.startsWith("var:") ? role(node.slice(4)) : node;
    if (Array.isArray(node)) return node.map(themed);
    if (node && typeof node === "object") {
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, themed(value)]));
    }
    return node;
  }
  function merged(base, over) {
    const out = Object.assign({}, base);
    for (const [key, value] of Object.entries(over || {})) {
      const plain = value && typeof value === "object" && !Array.isArray(value);
      out[key] = plain ? merged(out[key] || {}, value) : value;
    }
    return out;
  }
  function framed(layout, box, height) {
    const axis = {
      automargin: true, gridcolor: "var:grid", linecolor: "var:line", zeroline: false, fixedrange: true,
      tickfont: { color: "var:soft", size: 12 }, title: { font: { size: 13, color: "var:soft" }, standoff: 10 },
    };
    const axes = Object.keys(layout).filter((key) => /^[xy]axis/.test(key));
    const base = {
      width: printing ? PAPER : box.clientWidth,
      height: height, dragmode: false, hovermode: "closest",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: "var:ink" },
      margin: { l: 8, r: 14, t: 10, b: 8 },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { size: 12.5 } },
      hoverlabel: { bgcolor: "var:card", bordercolor: "var:line", font: { color: "var:ink" } },
    };
    ["xaxis", "yaxis"].concat(axes).forEach((key) => { base[key] = axis; });
    return themed(merged(merged(base, layout), { height: height }));
  }
  function drawn(box, data, layout, height) {
    if (!ready) return;
    box.style.minHeight = height + "px";
    Plotly.react(box, themed(data), framed(layout, box, height), settings);
  }
  function chart(figure) {
    const spec = JSON.parse(figure.querySelector(".plot-data").textContent);
    const box = figure.querySelector(".plot");
    return function () {
      const layout = box.clientWidth < NARROW && !printing ? merged(spec.layout, spec.narrow) : spec.layout;
      drawn(box, spec.data, layout, layout.height || spec.height);
    };
  }
  // A figure as plotly for Python made it: its own colours and size; only its width is the page's.
  function stored(figure) {
    const spec = JSON.parse(figure.querySelector(".figure-data").textContent);
    const box = figure.querySelector(".plot");
    return function () {
      if (!ready) return;
      const layout = Object.assign({}, spec.layout, { width: printing ? PAPER : Math.max(STORED, box.clientWidth) });
      Plotly.react(box, { data: spec.data, layout: layout, frames: spec.frames, config: { displaylogo: false } });
    };
  }

  function moveMap(figure) {
    const facts = JSON.parse(figure.querySelector(".map-data").textContent);
    const box = figure.querySelector(".plot");
    const slider = document.getElementById("map-scale");
    const shown = document.getElementById("map-scale-shown");
    const status = document.getElementById("map-status");
    const people = facts.people;
    const chosen = () => document.querySelector("input[name=map-rule]:checked").value;

    function standing(entry, favourable) {
      const away = new Set(entry.who);
      const pick = people.label.map((label, i) => i).filter((i) => !away.has(i) && (people.label[i] > 0) === favourable);
      return {
        type: "scatter", mode: "markers", name: facts.words[favourable ? "stay_good" : "stay_bad"],
        x: pick.map((i) => people.x[i]), y: pick.map((i) => people.y[i]),
        text: pick.map((i) => people.row_id[i]), hovertemplate: "person %{text}<br>stays<extra></extra>",
        marker: {
          symbol: favourable ? "circle" : "x-thin-open", size: favourable ? 6 : 7, opacity: 0.6,
          color: favourable ? "var:good" : "var:bad", line: { width: favourable ? 0 : 1.4, color: "var:bad" },
        },
      };
    }
    function moving(entry, favourable) {
      const x = [], y = [], size = [], text = [];
      entry.who.forEach(function (i, at) {
        if ((people.label[i] > 0) !== favourable) return;
        x.push(people.x[i], entry.x[at], null);
        y.push(people.y[i], entry.y[at], null);
        size.push(3, 11, 0);
        text.push(people.row_id[i] + ", before", people.row_id[i] + ", after", "");
      });
      const colour = favourable ? "var:good" : "var:bad";
      return {
        type: "scatter", mode: "lines+markers", name: facts.words[favourable ? "move_good" : "move_bad"],
        x: x, y: y, text: text, hovertemplate: "person %{text}<extra></extra>",
        line: { color: colour, width: 1.6, dash: favourable ? "solid" : "dot" },
        marker: { symbol: "arrow", angleref: "previous", size: size, color: colour, opacity: 1, line: { width: 0 } },
      };
    }
    function boundary(rule) {
      const [a, b, c] = facts.boundaries[rule];
      const [left, right] = facts.range.x, [low, high] = facts.range.y;
      const upright = Math.abs(b) * (high - low) < 1e-9 * Math.abs(a) * (right - left);
      return {
        type: "scatter", mode: "lines", name: facts.words[rule], hoverinfo: "skip",
        x: upright ? [-c / a, -c / a] : [left, right],
        y: upright ? [low, high] : [-(a * left + c) / b, -(a * right + c) / b],
        line: { color: "var:" + rule, width: rule === "strategic" ? 3 : 2.5, dash: rule === "strategic" ? "solid" : "dash" },
      };
    }
    // Which side of the boundary of the rule people respond to is which, where the boundary leaves the frame.
    function side(rule) {
      const [a, b, c] = facts.boundaries[rule];
      const [left, right] = facts.range.x, [low, high] = facts.range.y;
      const upright = Math.abs(b) * (high - low) < Math.abs(a) * (right - left);
      const at = upright ? -(b * high + c) / a : 0;
      if (!upright || at < left || at > right) return [];
      const words = a > 0 ? ["refused ", " approved"] : ["approved ", " refused"];
      return words.map((text, i) => ({
        text: text, x: at, y: high, xanchor: i ? "left" : "right", yanchor: "top", showarrow: false,
        xshift: i ? 4 : -4, font: { size: 12.5, color: "var:" + rule },
      }));
    }
    function picture() {
      const entry = facts.rules[chosen()][Number(slider.value)];
      const narrow = box.clientWidth < NARROW;
      const data = [
        standing(entry, true), standing(entry, false), moving(entry, true), moving(entry, false),
        boundary("strategic"), boundary("blind"),
      ];
      drawn(box, data, {
        xaxis: { range: facts.range.x, title: { text: narrow ? facts.axes.x_short : facts.axes.x } },
        yaxis: { range: facts.range.y, title: { text: narrow ? facts.axes.y_short : facts.axes.y } },
        legend: { font: { size: narrow ? 11.5 : 12.5 } },
        annotations: side(chosen()),
      }, narrow ? 520 : 540);
    }
    function percent(value) { return (100 * value).toFixed(1) + "\u202f%"; }
    function numbers() {
      const rule = chosen(), at = Number(slider.value), entry = facts.rules[rule][at];
      const scale = facts.scale_words[at];
      const paid = entry.mean_cost === null ? "–" : entry.mean_cost.toFixed(3);
      const texts = {
        share_moved: percent(entry.share_moved), mean_cost: paid,
        approved: percent(entry.approved), accuracy: percent(entry.accuracy),
      };
      for (const [key, text] of Object.entries(texts)) {
        const link = document.getElementById("map-" + key);
        const path = ["rules", rule, at, key];
        link.textContent = text;
        link.href = "move_map.json#/" + path.join("/");
        link.title = "move_map.json: " + path.join(".");
      }
      slider.setAttribute("aria-valuetext", scale.long);
      shown.textContent = scale.short;
      status.textContent = facts.rule_words[rule] + ", " + scale.long + ": " + texts.share_moved + " of people move" +
        (entry.mean_cost === null ? "" : ", at a mean cost of " + paid) + "; afterwards the rule is right for " + texts.accuracy + ".";
    }
    function changed() { picture(); numbers(); }
    slider.addEventListener("input", changed);
    document.querySelectorAll("input[name=map-rule]").forEach((radio) => radio.addEventListener("change", changed));
    return picture;
  }
  // A figure is drawn when it comes near the screen, and again when the theme or the width changes.
  const figures = new Map();
  const seen = new Set();
  function show(figure) {
    if (folded(figure)) return; // it has no width: it is drawn once its part opens
    seen.add(figure);
    if (!figures.has(figure)) figures.set(figure, figure.classList.contains("stored") ? stored(figure) : chart(figure));
    figures.get(figure)();
  }
  function again() { seen.forEach(show); }
  function folded(figure) { return figure.closest("details.part:not([open])"); }
  const every = Array.from(document.querySelectorAll("figure"));
  const near = new IntersectionObserver(function (entries) {
    entries.filter((entry) => entry.isIntersecting).forEach(function (entry) {
      near.unobserve(entry.target);
      show(entry.target);
    });
  }, { rootMargin: "800px" });
  every.forEach((figure) => near.observe(figure));
  // A link opens the folded part it leads to; a figure in a folded part is drawn once that opens.
  function unfold() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
    const inside = target && target.querySelector(":scope > details.part");
    if (inside) inside.open = true;
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", unfold);
  document.querySelectorAll("nav a").forEach((link) => link.addEventListener("click", () => setTimeout(unfold, 0)));
  document.querySelectorAll("details.part").forEach((part) => part.addEventListener("toggle", function () {
    if (part.open) part.querySelectorAll("figure").forEach(show);
  }));
  unfold();
  const map = document.querySelector("figure.move-map");
  if (map) figures.set(map, moveMap(map));

  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 50));
  // Words, numbers and tables come first: the plotting script is long, and runs once they are there.
  function plotting() {
    if (ready) return;
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotting").textContent;
    document.head.append(script);
    ready = true;
    again();
    root.dataset.drawn = "near";
    idle(rest);
  }
  // The figures further down follow one by one while the reader does nothing.
  function rest() {
    const next = every.find((figure) => !seen.has(figure) && !folded(figure));
    if (next) {
      near.unobserve(next);
      show(next);
      idle(rest);
    } else {
      root.dataset.drawn = "all";
    }
  }
  window.addEventListener("load", () => setTimeout(plotting, 0));

  let waiting = 0, last = window.innerWidth;
  window.addEventListener("resize", function () {
    if (window.innerWidth === last) return; // a phone's address bar changes the height alone
    last = window.innerWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(again);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  window.addEventListener("beforeprint", function () {
    plotting();
    printing = true;
    root.classList.add("printing");
    document.querySelectorAll("details:not([open]):not(figure *)").forEach(function (part) {
      part.open = true;
      part.dataset.shut = "yes";
    });
    every.forEach(show);
  });
  window.addEventListener("afterprint", function () {
    printing = false;
    root.classList.remove("printing");
    document.querySelectorAll("details[data-shut]").forEach(function (part) {
      part.open = false;
      delete part.dataset.shut;
    });
    again();
  });
})();
