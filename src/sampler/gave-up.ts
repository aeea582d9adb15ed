/** The error of a request whose caller's signal fired. */
export function gaveUp(): DOMException {
  return new DOMException("the caller gave up", "AbortError");
}
