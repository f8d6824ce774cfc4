import { parseArgs } from 'node:util'

export interface OracleOptions {
  readonly python: string
  readonly cases: number
  readonly seed: number
  /** Whether to keep the outcome in results.json. */
  readonly write: boolean
  readonly only: string | undefined
}

/** Reads `--python <path> --cases N --seed N [--only name] [--write]`. */
export function readOracleOptions(cases: number): OracleOptions {
  const { values } = parseArgs({
    options: {
      python: { type: 'string', default: 'python3' },
      cases: { type: 'string', default: String(cases) },
      seed: { type: 'string', default: '1' },
      only: { type: 'string' },
      write: { type: 'boolean', default: false },
    },
  })
  const { python, write, only } = values
  return { python, write, only, cases: Number(values.cases), seed: Number(values.seed) }
}
