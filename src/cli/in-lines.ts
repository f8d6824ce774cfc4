/** Words with commas between, in lines of so many letters at most. */
export function inLines(
  words: readonly string[],
  { indent, width }: { readonly indent: number; readonly width: number },
) {
  const lines = ['']
  for (const [at, word] of words.entries()) {
    const piece = at === words.length - 1 ? word : `${word}, `
    if (indent + (lines.at(-1) ?? '').length + piece.trimEnd().length > width) lines.push('')
    lines.push(`${lines.pop()}${piece}`)
  }
  return lines.map((line) => `${' '.repeat(indent)}${line.trimEnd()}`).join('\n')
}
