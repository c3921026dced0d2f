"""What WCAG AA demands of text and its ground, as a script that a page runs on itself."""

from __future__ import annotations

CONTRAST = """
(() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      if (each.tagName === 'g' && each.querySelector('rect')) return rgb(getComputedStyle(each.querySelector('rect')).fill);
      const found = rgb(getComputedStyle(each).backgroundColor);
      if (found.length && (found.length < 4 || found[3] > 0)) return found;
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || ['SCRIPT', 'OPTION'].includes(element.tagName)) continue;
    if (!element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const ink = light(rgb(element.namespaceURI.endsWith('svg') ? style.fill : style.color));
    const under = light(ground(element));
    const ratio = (Math.max(ink, under) + 0.05) / (Math.min(ink, under) + 0.05);
    if (ratio < 4.5) bad.push(`${element.tagName} ${walker.currentNode.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return bad;
})()
"""
