import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { JsonObject } from '../../src/core/json.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'

const FILE = new URL('results.json', import.meta.url)

/** Keeps the outcome of one comparison among those of the others. */
export function keepResult(name: string, outcome: JsonObject): void {
  const results = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : {}
  const sorted = JSON.parse(encodeCanonical({ ...results, [name]: outcome }))
  writeFileSync(FILE, `${JSON.stringify(sorted, undefined, 2)}\n`)
}
