// Texts that a policy can print or a task can carry, each of which would do something in a careless page. Those that
// run mark the document, so that a browser can be asked whether they did.
const MARK = "document.documentElement.setAttribute('data-owned','1')";

export const HOSTILE_TEXTS: Readonly<Record<string, string>> = {
  "a script after a closing tag": `</script></style></title></pre><script>${MARK}</script>`,
  "an image with a handler": `<img src=x onerror="${MARK}">`,
  "a handler that leaves an attribute": `" onmouseover="${MARK}" autofocus onfocus="${MARK}" x="`,
  "a javascript link": `<a href="javascript:${MARK}">x</a> javascript:${MARK}`,
  "an svg with a handler": `</text></svg><svg onload="${MARK}"><animate onbegin="${MARK}" attributeName=x>`,
  "a style and a redirect": `<style>*{display:none}</style><meta http-equiv="refresh" content="0;url=javascript:${MARK}"><base href="http://192.0.2.1/">`,
  "a comment and CDATA": `<!--><script>${MARK}</script>--><![CDATA[<script>${MARK}</script>]]>`,
  "an override of direction": "\u202egpj.exe\u2066\u200f \u2028\u2029 \u{e0041}",
  "terminal controls and NUL": "\u0000\u001b]0;title\u0007\u001b[2J\r\u009b31m\ud800",
  entities: "&lt;script&gt;&#60;img src=x&#62; &amp;lt; &quot;",
};
