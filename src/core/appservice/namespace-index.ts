import type { Expression } from './expression.ts'

/** An index of expressions and their values. */
export interface NamespaceIndex<Value> {
  /** The values of all expressions that match an id, in the given order. */
  find(id: string): readonly Value[]
}

/**
 * Finds the expressions that match an id without trying them all: they are indexed by the beginning of their ids, so that only
 * candidates are tried.
 */
export function indexNamespaces<Value>(
  entries: readonly { readonly expression: Expression; readonly value: Value }[],
): NamespaceIndex<Value> {
  interface Held {
    readonly order: number
    readonly matches: (id: string) => boolean
    readonly value: Value
  }
  const byPrefix = new Map<string, Held[]>()
  for (const [order, { expression, value }] of entries.entries()) {
    const held = byPrefix.get(expression.prefix) ?? []
    held.push({ order, matches: expression.matches, value })
    byPrefix.set(expression.prefix, held)
  }
  const lengths = [...new Set([...byPrefix.keys()].map((prefix) => prefix.length))].sort((a, b) => a - b)

  return {
    find(id) {
      const found: Held[] = []
      for (const length of lengths) {
        if (length > id.length) break
        for (const held of byPrefix.get(id.slice(0, length)) ?? []) if (held.matches(id)) found.push(held)
      }
      return found.sort((a, b) => a.order - b.order).map(({ value }) => value)
    },
  }
}
