/** Upper bounds of buckets for times, in seconds. */
export const SECONDS: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Times in plain numbers: prom-client's own histogram takes about 3 µs per observation, which would slow down sends. */
export class Histogram {
  readonly #counts: number[] = new Array(SECONDS.length + 1).fill(0)
  #sum = 0

  observe(seconds: number): void {
    let bucket = 0
    while (bucket < SECONDS.length && seconds > SECONDS[bucket]!) bucket++
    this.#counts[bucket]!++
    this.#sum += seconds
  }

  /** How many took at most as long as each bound, and longer than the one before. */
  get counts(): readonly number[] {
    return this.#counts
  }

  get count(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0)
  }

  /** Its lines in the text format of Prometheus. @param labels such as `kind="x"`; may be empty */
  lines(name: string, labels: string): string[] {
    let below = 0
    const joint = labels === '' ? '' : `${labels},`
    const among = labels === '' ? '' : `{${labels}}`
    const buckets = this.#counts.map((count, index) => {
      below += count
      return `${name}_bucket{${joint}le="${SECONDS[index] ?? '+Inf'}"} ${below}`
    })
    return [...buckets, `${name}_sum${among} ${this.#sum}`, `${name}_count${among} ${below}`]
  }
}

/** Histograms of one name, one for each kind of work. All kinds are there from the start. */
export interface Timings<Kind extends string> {
  observe(kind: Kind, seconds: number): void
  text(): string
}

export function createTimings<Kind extends string>(
  name: string,
  help: string,
  label: string,
  kinds: readonly Kind[],
): Timings<Kind> {
  const byKind = Object.fromEntries(kinds.map((kind) => [kind, new Histogram()])) as Record<Kind, Histogram>
  return {
    observe: (kind, seconds) => byKind[kind].observe(seconds),
    text: () =>
      [
        ...head(name, help, 'histogram'),
        ...kinds.flatMap((kind) => byKind[kind].lines(name, `${label}="${kind}"`)),
      ].join('\n'),
  }
}

/** The lines above the values of a metric. */
export function head(name: string, help: string, type: 'counter' | 'gauge' | 'histogram'): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]
}
