// JSON whose numbers come out as they went in.

/** What JSON says. What JavaScript would round, or make Infinity, stays the text that it is. Throws a SyntaxError. */
export const parseJson = (text) => JSON.parse(text, (_, value, { source }) =>
  typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER ? JSON.rawJSON(source) : value);
