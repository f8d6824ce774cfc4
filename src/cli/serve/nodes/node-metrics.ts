/** The values of one name. */
interface Measure {
  /** The node whose words describe it. */
  readonly describedBy: number
  readonly description: string[]
  readonly values: string[]
}

/**
 * Makes one text of the metrics of several nodes, in the text format of Prometheus: each value bears the number of its node, and those of
 * one name stand together.
 */
export function joinMetrics(texts: ReadonlyMap<number, string>): string {
  const measures = new Map<string, Measure>()
  for (const [number, text] of texts) {
    let current: Measure | undefined
    for (const line of text.split('\n')) {
      if (line.startsWith('#')) {
        const name = line.split(' ', 3)[2] ?? ''
        current = measures.get(name) ?? { describedBy: number, description: [], values: [] }
        measures.set(name, current)
        if (current.describedBy === number) current.description.push(line)
      } else if (line !== '') current?.values.push(withLabel(line, number))
    }
  }
  return [...measures.values()]
    .flatMap(({ description, values }) => [...description, ...values])
    .map((line) => `${line}\n`)
    .join('')
}

function withLabel(line: string, number: number): string {
  const end = line.search(/[{ ]/)
  const name = line.slice(0, end)
  const label = `node="${number}"`
  return line[end] === '{' ? `${name}{${label},${line.slice(end + 1)}` : `${name}{${label}}${line.slice(end)}`
}
