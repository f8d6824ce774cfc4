/** A name, and its lines beside it. */
export function entry(name: string, lines: readonly string[]): string {
  return lines.map((line, index) => `  ${(index === 0 ? name : '').padEnd(14)}${line}`).join('\n')
}
