// RFC 8785 in JavaScript, on whose numbers and strings the RFC is based: reads one document per line and writes its
// canonical form, one per line.

import { readFileSync, writeSync } from "node:fs";

function canonical(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  // sort() compares strings by UTF-16 code units, as the RFC requires.
  const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}

const lines = readFileSync(0, "utf8").split("\n").filter((line) => line !== "");
let rest = Buffer.from(lines.map((line) => canonical(JSON.parse(line)) + "\n").join(""), "utf8");
while (rest.length > 0) {
  try {
    rest = rest.subarray(writeSync(1, rest));
  } catch (error) {
    if (error.code !== "EAGAIN") throw error;
  }
}
