import type { ChildServer } from './child-server.ts'

/** What the log of a process says of the nodes that it started. */
export interface FamilyLog {
  /** The newest process of each node, by its number. */
  pids(): ReadonlyMap<number, number>
  /** The number of the node that began to serve last. */
  serving(): number | undefined
  /** How long those had to wait that began after one that ended by itself. */
  waitsMs(): readonly number[]
}

export function familyLog(server: Pick<ChildServer, 'output'>): FamilyLog {
  const lines = () =>
    server
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as { msg: string; node?: number; pid?: number; waited_ms?: number })
  return {
    pids: () =>
      new Map(
        lines()
          .filter(({ msg }) => msg === 'a node begins')
          .map(({ node, pid }) => [node!, pid!]),
      ),
    serving: () => lines().findLast(({ msg, node }) => msg === 'ready' && node !== undefined)?.node,
    waitsMs: () => lines().flatMap(({ waited_ms = 0 }) => (waited_ms > 0 ? [waited_ms] : [])),
  }
}
