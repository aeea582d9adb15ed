// Numbers as the report writes them. A minus is U+2212, as wide as a plus.

/** 0.412 → "41.2 %" */
export function percent(share: number): string {
  return `${signless(100 * share, 1)} %`;
}

/** A difference of shares in points of percent: 0.123 → "+12.3" */
export function points(difference: number): string {
  return signed(100 * difference, 1);
}

export function signed(value: number, digits: number): string {
  return `${value >= 0 ? "+" : ""}${signless(value, digits)}`;
}

export function decimals(value: number, digits: number): string {
  return signless(value, digits);
}

/** Three significant digits where they can be read, else a power of ten: "0.0123", "4.1×10⁻⁴" */
export function significant(value: number): string {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size < 1e-3 || size >= 1e5) return scientific(value, 1);
  return minus(String(Number(value.toPrecision(3))));
}

/** @param digits after the point of the mantissa */
export function scientific(value: number, digits: number): string {
  const [mantissa, exponent] = value.toExponential(digits).split("e");
  return minus(`${mantissa === "1" ? "" : `${mantissa}×`}10${superscript(Number(exponent))}`);
}

/** 12817 → "12,817" */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** 1412345 → "1.4 M" */
export function roundCount(value: number): string {
  if (value >= 1e9) return `${(value / 1e9).toFixed(1)} G`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  return value >= 1e4 ? `${(value / 1e3).toFixed(0)} k` : count(value);
}

/** "85 ms", "3.4 s", "12 min 5 s", "2 h 4 min" */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${milliseconds.toFixed(0)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 99.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** "2026-11-30 01:09 UTC" from an ISO time */
export function moment(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;
}

/** "1 turn", "3 turns" */
export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function signless(value: number, digits: number): string {
  const text = value.toFixed(digits);
  // −0.04 rounds to "-0.0".
  return minus(Number(text) === 0 ? text.replace("-", "") : text);
}

function minus(text: string): string {
  return text.replace("-", "−");
}

function superscript(exponent: number): string {
  return [...String(exponent)].map(digit => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)])).join("");
}
