/** An event of a room, as the admin API gives it. */
export interface GraphEvent {
  readonly event_id: string
  readonly type: string
  readonly state_key: string | null
  readonly sender: string
  readonly origin_server_ts: number
  readonly depth: number
  readonly prev_events: readonly string[]
  readonly standing: string | null
  readonly reason: string | null
  readonly bytes: number
}

/** A line from an event down to one that it refers to. */
export interface Edge {
  readonly fromRow: number
  readonly fromColumn: number
  /** The column in which it goes down. */
  readonly viaColumn: number
  /** The row after the last for an event that is not in the picture. */
  readonly toRow: number
  readonly toColumn: number
  readonly isOpen: boolean
}

export interface Layout {
  /** The column of each event, in the order of the events. */
  readonly columns: readonly number[]
  readonly edges: readonly Edge[]
  readonly width: number
}

/** More branches at a time share the last column. */
const MAX_COLUMNS = 14

/**
 * Puts events, the newest first, one into a row, and in columns by their branches: an event continues the column of the newest event that
 * refers to it.
 */
export function layOut(events: readonly GraphEvent[]): Layout {
  const rowOf = new Map(events.map(({ event_id }, row) => [event_id, row]))
  /** The event that each column waits for. */
  const waiting: (string | undefined)[] = []
  const columns: number[] = []
  const open: { row: number; column: number; via: number; to: string }[] = []

  function freeColumn(): number {
    const free = waiting.indexOf(undefined)
    return free === -1 ? waiting.length : free
  }

  for (const [row, { event_id, prev_events }] of events.entries()) {
    const known = waiting.indexOf(event_id)
    const column = known === -1 ? freeColumn() : known
    for (const [index, wanted] of waiting.entries()) if (wanted === event_id) waiting[index] = undefined
    columns.push(column)
    for (const [index, previous] of prev_events.entries()) {
      const parentRow = rowOf.get(previous)
      // An event that lies about its depth stands below what refers to it.
      if (parentRow !== undefined && parentRow <= row) continue
      const shared = waiting.indexOf(previous)
      // The line goes on straight, and one further to the right joins it: so it never wanders.
      const isStraight = index === 0 && waiting[column] === undefined && (shared === -1 || column < shared)
      const via = isStraight ? column : shared !== -1 ? shared : freeColumn()
      waiting[via] = previous
      open.push({ row, column, via, to: previous })
    }
  }

  const most = (column: number) => Math.min(column, MAX_COLUMNS - 1)
  const edges = open.map(({ row, column, via, to }) => {
    const parent = rowOf.get(to)
    return {
      fromRow: row,
      fromColumn: most(column),
      viaColumn: most(via),
      toRow: parent ?? events.length,
      toColumn: most(parent === undefined ? via : (columns[parent] ?? via)),
      isOpen: parent === undefined,
    }
  })
  return { columns: columns.map(most), edges, width: Math.min(MAX_COLUMNS, Math.max(1, waiting.length)) }
}
