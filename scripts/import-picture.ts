import { SOURCES } from '../test/support/sources.ts'

/** Which folders each folder imports from, itself left out. */
type Edges = ReadonlyMap<string, ReadonlySet<string>>

/**
 * The layers and the folders of `domain/` and `domain/rooms/` with their imports, as text. A folder stands above those it imports from;
 * where two import from each other, an arrow marks what points back up.
 */
export function importPicture(): string {
  return [pictureOf('src/'), pictureOf('src/domain/'), pictureOf('src/domain/rooms/')].join('\n\n')
}

function pictureOf(parent: string): string {
  const edges = edgesBetween(parent.slice('src/'.length))
  const order = topDown(edges)
  const width = Math.max(parent.length, ...order.map((name) => name.length + 2))
  const lines = order.map((name, row) => {
    const imported = order.filter((other) => edges.get(name)?.has(other))
    const down = imported.filter((other) => order.indexOf(other) > row)
    const up = imported.filter((other) => order.indexOf(other) < row)
    return `  ${name.padEnd(width)}${[...down, ...up.map((other) => `↑${other}`)].join('  ')}`.trimEnd()
  })
  return [`${parent.padEnd(width + 2)}imports from`, ...lines].join('\n')
}

/** The folders right inside `parent`. Files that lie beside the folders are left out: they are shared by all or put all together. */
function edgesBetween(parent: string): Edges {
  const edges = new Map<string, Set<string>>()
  for (const { name, imports } of SOURCES) {
    const from = folderIn(parent, name)
    if (from === undefined) continue
    const imported = edges.get(from) ?? new Set<string>()
    edges.set(from, imported)
    for (const { target } of imports) {
      const to = folderIn(parent, target)
      if (to !== undefined && to !== from) imported.add(to)
    }
  }
  return edges
}

function folderIn(parent: string, name: string): string | undefined {
  if (!name.startsWith(parent)) return undefined
  const rest = name.slice(parent.length)
  return rest.includes('/') ? rest.slice(0, rest.indexOf('/')) : undefined
}

/**
 * The folders in an order with few imports that point back. What nobody left imports goes to the top, what imports nobody left to the
 * bottom; in a circle, the folder that imports more than it is imported goes first. The alphabet decides between equals.
 */
function topDown(edges: Edges): string[] {
  const left = new Set([...edges.keys()].sort())
  const top: string[] = []
  const bottom: string[] = []
  const importsOf = (name: string) => [...(edges.get(name) ?? [])].filter((other) => left.has(other)).length
  const importersOf = (name: string) => [...left].filter((other) => edges.get(other)?.has(name)).length
  while (left.size > 0) {
    const names = [...left]
    const lowest = names.findLast((name) => importsOf(name) === 0)
    const highest = names.toSorted((a, b) => importsOf(b) - importersOf(b) - (importsOf(a) - importersOf(a)))
    const next = lowest ?? names.find((name) => importersOf(name) === 0) ?? highest[0]!
    if (next === lowest) bottom.unshift(next)
    else top.push(next)
    left.delete(next)
  }
  return [...top, ...bottom]
}
