import type { Json } from '../api.ts'

/**
 * What clients said to a server, so that it can be said again: `start` and `end` of each request, with its number, and what happened to
 * the server.
 */
export type Line =
  | readonly ['start', id: number, session: string, method: string, path: string, body: number | null]
  | readonly ['end', id: number, outcome: 'answered' | 'lost' | 'cancelled', status: number]
  | readonly [event: string]

export interface Script {
  /** Each once: clients repeat themselves. */
  readonly bodies: readonly Json[]
  readonly lines: readonly Line[]
}

/** Stands in a script for something that only the server knows. */
export const placeholder = (name: string): string => `<${name}>`

const PLACEHOLDER = /<([a-z0-9]+ [a-z_0-9]+)>/g

/** Puts in what a server said in place of what stands for it. */
export function fill(text: string, value: (name: string) => string): string {
  return text.replace(PLACEHOLDER, (_, name: string) => value(name))
}

/** A line of JSON for each body, which is an object, and for each line of the script, which is a list. */
export function writeScript({ bodies, lines }: Script): string {
  return [...bodies, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('')
}

export function readScript(text: string): Script {
  const all = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Json)
  const isLine = (one: Json): one is Line => Array.isArray(one)
  return { bodies: all.filter((one) => !isLine(one)), lines: all.filter(isLine) }
}
