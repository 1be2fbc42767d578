"use strict";
// Shows the value nearest to the pointer, and switches series by the legend. Nothing is stored or sent.
(() => {
  const tip = document.getElementById("tip");
  const REACH = 28; // pixels from which a point is found: a fingertip
  let near = null;

  // The texts move out of the way of the browser's own, slower tooltip.
  for (const point of document.querySelectorAll("figure .pt")) {
    const title = point.querySelector("title");
    point.dataset.tip = title.textContent;
    title.remove();
  }

  const distance = (box, x, y) => Math.hypot(
    Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));

  function hide() {
    if (near) near.classList.remove("near");
    near = null;
    tip.hidden = true;
  }

  function show(svg, x, y) {
    let best = null, least = REACH;
    for (const point of svg.querySelectorAll(".series:not(.off) .pt")) {
      const found = distance(point.getBoundingClientRect(), x, y);
      // Later elements lie on top, so they win when equally near.
      if (found <= least) { best = point; least = found; }
    }
    if (!best) { hide(); return; }
    if (near !== best) {
      hide();
      near = best;
      near.classList.add("near");
      tip.textContent = near.dataset.tip;
      tip.hidden = false;
    }
    const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
    const above = y + 18 + tip.offsetHeight > innerHeight;
    tip.style.left = `${Math.max(left, 8)}px`;
    tip.style.top = `${above ? y - tip.offsetHeight - 12 : y + 18}px`;
  }

  for (const svg of document.querySelectorAll("figure svg")) {
    svg.setAttribute("role", "group"); // an image would hide its buttons
    svg.addEventListener("pointermove", event => show(svg, event.clientX, event.clientY));
    svg.addEventListener("pointerdown", event => show(svg, event.clientX, event.clientY));
    svg.addEventListener("pointerleave", hide);
  }
  addEventListener("scroll", hide, { passive: true });

  // Both sizes of a chart switch together, so that turning a telephone keeps the choice.
  for (const figure of document.querySelectorAll("figure")) {
    const off = new Set();
    const name = part => "hue" in part.dataset && !part.classList.contains("series")
      ? `hue ${part.dataset.hue}` : `role ${part.dataset.role}`;
    const update = () => {
      for (const key of figure.querySelectorAll(".key")) key.setAttribute("aria-pressed", !off.has(name(key)));
      for (const series of figure.querySelectorAll(".series")) {
        const { hue, role } = series.dataset;
        series.classList.toggle("off", off.has(`hue ${hue}`) || off.has(`role ${role}`));
      }
      hide();
    };
    for (const key of figure.querySelectorAll(".key")) {
      key.setAttribute("role", "button");
      key.setAttribute("tabindex", "0");
      const press = () => { if (!off.delete(name(key))) off.add(name(key)); update(); };
      key.addEventListener("click", press);
      key.addEventListener("keydown", event => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(); }
      });
    }
    update();
  }
})();
