/** A name, and what belongs to it on as many lines as it takes. */
export function entry(name: string, lines: readonly string[]): string {
  return lines.map((line, index) => `  ${(index === 0 ? name : '').padEnd(14)}${line}`).join('\n')
}
