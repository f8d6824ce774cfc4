import { useMemo, useState } from 'preact/hooks'
import { path, withQuery } from '../api.ts'
import { bytes, moment } from '../format.ts'
import { type Edge, type GraphEvent, layOut } from '../graph-layout.ts'
import { Badge } from '../parts/badge.tsx'
import { Facts } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { to } from '../router.ts'
import { useData } from '../use-data.ts'

interface GraphData {
  readonly events: readonly GraphEvent[]
  readonly extremities: readonly string[]
  readonly missing: readonly string[]
  readonly next_before?: number
}

const ROW = 30
const COLUMN = 16

export function RoomGraph({ roomId }: { readonly roomId: string }) {
  const [befores, setBefores] = useState<readonly number[]>([])
  const graph = useData<GraphData>(withQuery(path`/_hearth/admin/v1/rooms/${roomId}/graph`, { before: befores.at(-1) }))
  return (
    <Shown of={graph}>
      {(data) => (
        <>
          <Summary data={data} />
          <Picture data={data} />
          <nav class="pager" aria-label="Pages of the graph">
            {befores.length > 0 && (
              <button type="button" class="quiet small" onClick={() => setBefores(befores.slice(0, -1))}>
                Newer
              </button>
            )}
            {data.next_before !== undefined && (
              <button type="button" class="quiet small" onClick={() => setBefores([...befores, data.next_before!])}>
                Older
              </button>
            )}
          </nav>
        </>
      )}
    </Shown>
  )
}

function Summary({ data: { events, extremities, missing } }: { readonly data: GraphData }) {
  const refused = events.filter(({ standing }) => standing !== null).length
  const tips = extremities.length === 1 ? 'one forward extremity' : `${extremities.length} forward extremities`
  return (
    <p class="legend">
      <span>
        {events.length} events, {tips}
      </span>
      <span>
        <i class="dot tip" aria-hidden="true" /> forward extremity
      </span>
      <span>
        <i class="dot refused" aria-hidden="true" /> rejected
      </span>
      <span>
        <i class="dot soft-failed" aria-hidden="true" /> soft-failed
      </span>
      <span>{refused === 0 ? 'none was refused' : `${refused} refused`}</span>
      {missing.length > 0 && <span>{missing.length} of the events that these refer to are not here</span>}
    </p>
  )
}

const x = (column: number) => column * COLUMN + COLUMN / 2
const y = (row: number) => row * ROW + ROW / 2

function pathOf({ fromRow, fromColumn, viaColumn, toRow, toColumn }: Edge): string {
  const half = ROW / 2
  const down = `M${x(fromColumn)} ${y(fromRow)}C${x(fromColumn)} ${y(fromRow) + half} ${x(viaColumn)} ${y(fromRow) + half} ${x(viaColumn)} ${y(fromRow) + ROW}`
  if (toRow === fromRow + 1 && viaColumn === toColumn) return down
  const end = `C${x(viaColumn)} ${y(toRow) - half} ${x(toColumn)} ${y(toRow) - half} ${x(toColumn)} ${y(toRow)}`
  return `${down}L${x(viaColumn)} ${Math.max(y(fromRow) + ROW, y(toRow) - ROW)}${end}`
}

function Picture({ data: { events, extremities } }: { readonly data: GraphData }) {
  const [opened, setOpened] = useState<string>()
  const layout = useMemo(() => layOut(events), [events])
  const tips = new Set(extremities)
  const width = layout.width * COLUMN
  const shown = events.find(({ event_id }) => event_id === opened)
  return (
    <div class="graph">
      <div class="graph-body">
        <svg width={width} height={(events.length + 1) * ROW} aria-hidden="true">
          {layout.edges.map((edge) => (
            <path
              key={`${edge.fromRow} ${edge.viaColumn} ${edge.toRow}`}
              d={pathOf(edge)}
              class={edge.isOpen ? 'edge open' : 'edge'}
            />
          ))}
          {events.map(({ event_id, standing }, row) => (
            <circle
              key={event_id}
              cx={x(layout.columns[row] ?? 0)}
              cy={y(row)}
              r={5}
              class={
                standing === null
                  ? tips.has(event_id)
                    ? 'tip'
                    : 'node'
                  : standing === 'rejected'
                    ? 'refused'
                    : standing
              }
            />
          ))}
        </svg>
        <ol>
          {events.map((event) => (
            <li key={event.event_id}>
              <button
                type="button"
                class="event"
                aria-pressed={event.event_id === opened}
                onClick={() => setOpened(event.event_id === opened ? undefined : event.event_id)}
              >
                <code>{event.type}</code>
                <span class="soft">{event.sender}</span>
                {event.standing !== null && (
                  <Badge tone={event.standing === 'rejected' ? 'bad' : 'warn'}>{event.standing}</Badge>
                )}
                {event.reason !== null && <span class="reason">{event.reason}</span>}
              </button>
            </li>
          ))}
        </ol>
      </div>
      {shown !== undefined && <Details event={shown} isTip={tips.has(shown.event_id)} />}
    </div>
  )
}

function Details({ event, isTip }: { readonly event: GraphEvent; readonly isTip: boolean }) {
  return (
    <aside class="card" aria-label="The event">
      <Facts
        list={[
          ['Event', <code>{event.event_id}</code>],
          ['Type', <code>{event.type}</code>],
          ['State key', event.state_key === null ? 'none: not a state event' : <code>{event.state_key || "''"}</code>],
          ['Sender', <a href={to(['users', event.sender])}>{event.sender}</a>],
          ['Said to be of', moment(event.origin_server_ts)],
          ['Depth', String(event.depth)],
          ['Refers to', `${event.prev_events.length} event${event.prev_events.length === 1 ? '' : 's'}`],
          ['Size', bytes(event.bytes)],
          ['Place', event.standing ?? (isTip ? 'a forward extremity' : 'in the room')],
          ...(event.reason === null ? [] : [['Refused', event.reason] as const]),
        ]}
      />
    </aside>
  )
}
