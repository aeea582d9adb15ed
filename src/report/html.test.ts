import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scanMarkup } from "../../test/report/scan-markup.ts";
import { html, styleElement } from "./html.ts";
import { visibleText } from "./visible-text.ts";

const HOSTILE = [
  "</p><script>alert(1)</script>",
  '" onmouseover="alert(1)',
  "<img src=x onerror=alert(1)>",
  "<!-- ",
  "]]>",
  "&lt;script&gt;",
  "</style><svg onload=alert(1)>",
];

describe("html", () => {
  it("gives every text back as text, in content and in attributes", () => {
    const roundTrip = (text: string): void => {
      const { elements, text: content } = scanMarkup(html`<p title="${text}">${text}</p>`.text);
      expect(content).toBe(visibleText(text));
      expect(elements).toEqual([{ name: "p", attributes: new Map([["title", visibleText(text)]]) }]);
    };
    HOSTILE.forEach(roundTrip);
    fc.assert(fc.property(fc.string({ unit: "binary" }), roundTrip));
    fc.assert(fc.property(fc.string({ unit: fc.constantFrom(..."<>&\"'/=- \n`a!") }), roundTrip));
  });

  it("keeps markup, joins lists, and leaves out what is not there", () => {
    const list = ["a", "<"].map(text => html`<li>${text}</li>`);
    expect(html`<ul>${list}${undefined}${false}${3}</ul>`.text).toBe("<ul><li>a</li><li>&lt;</li>3</ul>");
  });

  it.each([
    ["a handler", () => html`<p onclick="${"x"}"></p>`],
    ["a style", () => html`<p style="${"x"}"></p>`],
    ["a source", () => html`<img src="${"x"}">`],
    ["a link out of the page", () => html`<a href="${"javascript:alert(1)"}"></a>`],
    ["a link that only looks inner", () => html`<a href="x#${"y"}"></a>`],
    ["an attribute's name", () => html`<p ${"x"}="1"></p>`],
    ["an attribute without quotes", () => html`<p title=${"x"}></p>`],
    ["an attribute in single quotes", () => html`<p title='${"x"}'></p>`],
    ["a tag's name", () => html`<${"p"}></p>`],
    ["markup in an attribute", () => html`<p title="${html`<b></b>`}"></p>`],
    ["a script element", () => html`<script>${"x"}</script>`],
    ["a frame", () => html`<iframe title="x"></iframe>`],
    ["a style element beside styleElement", () => html`<style>${"x"}</style>`],
    ["a comment", () => html`<!-- ${"x"} -->`],
    ["a number that is none", () => html`<p>${Number.NaN}</p>`],
    ["a template that ends in a tag", () => html`<p title="${"x"}"`],
    ["CSS that ends its element", () => styleElement("</style><script>")],
  ])("refuses %s", (_, write) => {
    expect(write).toThrow();
  });

  it("allows a link into the page", () => {
    expect(html`<a href="#${'e"1'}">x</a>`.text).toBe('<a href="#e&quot;1">x</a>');
  });
});
