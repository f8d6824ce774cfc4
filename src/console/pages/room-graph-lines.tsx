import type { RefObject } from 'preact'
import { useLayoutEffect, useMemo, useState } from 'preact/hooks'
import { type Edge, type GraphEvent, layOut } from '../graph-layout.ts'

/** What an event is drawn as: shapes differ, not colours alone. */
export type Mark = 'node' | 'tip' | 'soft-failed' | 'rejected'

const COLUMN = 18
/** From the top of an event's row to the middle of its first line. */
const FIRST_LINE = 17
const BEND = 26
/** Colours of branches side by side. */
const BRANCHES = 6

export function markOf({ standing, event_id }: GraphEvent, tips: ReadonlySet<string>): Mark {
  if (standing === null) return tips.has(event_id) ? 'tip' : 'node'
  return standing === 'rejected' ? 'rejected' : 'soft-failed'
}

const xOf = (column: number) => column * COLUMN + COLUMN / 2 + 2

export function MarkPicture(at: {
  readonly mark: Mark
  readonly x: number
  readonly y: number
  readonly branch: number
}) {
  const { mark, x, y } = at
  const branch = `branch${at.branch % BRANCHES}`
  if (mark === 'node') return <circle cx={x} cy={y} r={4.5} class={branch} />
  if (mark === 'tip') {
    return (
      <g class={`tip ${branch}`}>
        <circle cx={x} cy={y} r={6.5} class="ring" />
        <circle cx={x} cy={y} r={3.5} />
      </g>
    )
  }
  if (mark === 'soft-failed') {
    return <path d={`M${x} ${y - 6.5}L${x + 6.5} ${y}L${x} ${y + 6.5}L${x - 6.5} ${y}Z`} class="soft-failed" />
  }
  return (
    <g class="rejected">
      <circle cx={x} cy={y} r={6.5} />
      <path d={`M${x - 3} ${y - 3}l6 6m0 -6l-6 6`} />
    </g>
  )
}

/** A curve from an event down to the one that it refers to, beside what is between them. */
function curveOf({ fromColumn, viaColumn, toColumn }: Edge, y: number, end: number): string {
  const [x, via, last] = [xOf(fromColumn), xOf(viaColumn), xOf(toColumn)]
  const bend = Math.min(BEND, (end - y) / 2)
  const out = `M${x} ${y}C${x} ${y + bend / 2} ${via} ${y + bend / 2} ${via} ${y + bend}`
  return `${out}L${via} ${end - bend}C${via} ${end - bend / 2} ${last} ${end - bend / 2} ${last} ${end}`
}

/** The middle of the first line of each row, and where the last one ends. Texts wrap on narrow screens, so rows are measured. */
function useRows(list: RefObject<HTMLOListElement | null>, events: readonly GraphEvent[]): readonly number[] {
  const [rows, setRows] = useState<readonly number[]>([])
  useLayoutEffect(() => {
    const element = list.current
    if (element === null) return
    const measure = () =>
      setRows([
        ...[...element.children].map((row) => (row as HTMLElement).offsetTop + FIRST_LINE),
        element.offsetHeight,
      ])
    measure()
    const sizes = new ResizeObserver(measure)
    sizes.observe(element)
    return () => sizes.disconnect()
  }, [events])
  return rows
}

/** How the events of a list beside it refer to each other. */
export function GraphLines({
  events,
  tips,
  list,
  opened,
}: {
  readonly events: readonly GraphEvent[]
  readonly tips: ReadonlySet<string>
  readonly list: RefObject<HTMLOListElement | null>
  readonly opened: string | undefined
}) {
  const layout = useMemo(() => layOut(events), [events])
  const rows = useRows(list, events)
  if (rows.length !== events.length + 1) return <svg width={layout.width * COLUMN + 4} aria-hidden="true" />
  return (
    <svg width={layout.width * COLUMN + 4} height={rows.at(-1)} aria-hidden="true">
      {layout.edges.map((edge) => {
        const event = events[edge.fromRow]!
        const names = [
          'edge',
          `branch${edge.viaColumn % BRANCHES}`,
          edge.isOpen && 'open',
          event.standing !== null && 'refused',
          event.event_id === opened && 'opened',
        ]
        return (
          <path
            key={`${edge.fromRow} ${edge.viaColumn} ${edge.toRow}`}
            d={curveOf(edge, rows[edge.fromRow]!, rows[edge.toRow]!)}
            class={names.filter(Boolean).join(' ')}
          />
        )
      })}
      {events.map((event, row) => (
        <MarkPicture
          key={event.event_id}
          mark={markOf(event, tips)}
          x={xOf(layout.columns[row] ?? 0)}
          y={rows[row]!}
          branch={layout.columns[row] ?? 0}
        />
      ))}
    </svg>
  )
}
