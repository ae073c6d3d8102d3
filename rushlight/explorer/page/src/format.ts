// Formatting of numbers for people.

const THOUSANDS = ["", "k", "M", "G", "T"];

/** "9.13 µs". */
export function seconds(value: number): string {
  if (!value) return "0";
  if (value >= 100) return `${value.toFixed(0)} s`;
  if (value >= 1) return `${value.toPrecision(3)} s`;
  if (value >= 1e-3) return `${digits(value * 1e3)} ms`;
  if (value >= 1e-6) return `${digits(value * 1e6)} µs`;
  return `${digits(value * 1e9)} ns`;
}

/** "1.23 MB". */
export function bytes(value: number): string {
  return `${scaled(value)}B`;
}

/** "1.23 M", to be followed by a unit. */
export function scaled(value: number): string {
  let step = 0;
  while (Math.abs(value) >= 1000 && step < THOUSANDS.length - 1) {
    value /= 1000;
    step++;
  }
  return `${digits(value)} ${THOUSANDS[step]}`;
}

export function percent(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const share = value * 100;
  return `${share !== 0 && share < 9.95 ? share.toFixed(1) : share.toFixed(0)}%`;
}

/** A share of the machine's measured best, which data in caches or a busy machine can exceed. */
export function shareOfBest(share: number): string {
  return share > 1 ? ">100%" : percent(share);
}

/** "1 kernel", "2 kernels". */
export function count(number: number, noun: string): string {
  const plural = /(s|sh|ch)$/.test(noun) ? `${noun}es` : noun.endsWith("py") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

function digits(value: number): string {
  if (Number.isInteger(value) && value < 1000) return String(value);
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
