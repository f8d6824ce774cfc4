import { readdirSync, readFileSync } from 'node:fs'

/** A process and all below it, by what the system says of parents. */
export function withAllBelow(pid: number): number[] {
  const parents = readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const [, parent] = /\) \S (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? []
      return [[Number(name), Number(parent)] as const]
    } catch {
      return []
    }
  })
  const below = (of: number): number[] =>
    parents.flatMap(([child, parent]) => (parent === of ? [child, ...below(child)] : []))
  return [pid, ...below(pid)]
}
