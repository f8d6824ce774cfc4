import { useRef, useState } from 'preact/hooks'
import { path, withQuery } from '../api.ts'
import { briefly, bytes, moment } from '../format.ts'
import type { GraphEvent } from '../graph-layout.ts'
import { Badge } from '../parts/badge.tsx'
import { Facts } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { to } from '../router.ts'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'
import { GraphLines, type Mark, MarkPicture, markOf } from './room-graph-lines.tsx'

interface GraphData {
  readonly events: readonly GraphEvent[]
  readonly extremities: readonly string[]
  readonly missing: readonly string[]
  readonly next_before?: number
}

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

export function RoomGraph({ roomId }: { readonly roomId: string }) {
  const [befores, setBefores] = useState<readonly number[]>([])
  const graph = useData<GraphData>(withQuery(path`/_hearth/admin/v1/rooms/${roomId}/graph`, { before: befores.at(-1) }))
  return (
    <Shown of={graph}>
      {(data) => (
        <>
          <Graph data={data} />
          <nav class="pager" aria-label={t('Pages of the graph')}>
            {befores.length > 0 && (
              <button type="button" class="quiet small" onClick={() => setBefores(befores.slice(0, -1))}>
                {t('Newer')}
              </button>
            )}
            {data.next_before !== undefined && (
              <button type="button" class="quiet small" onClick={() => setBefores([...befores, data.next_before!])}>
                {t('Older')}
              </button>
            )}
          </nav>
        </>
      )}
    </Shown>
  )
}

function Graph({ data }: { readonly data: GraphData }) {
  const { events, extremities } = data
  const [opened, setOpened] = useState<string>()
  const list = useRef<HTMLOListElement>(null)
  const tips = new Set(extremities)
  const shown = events.find(({ event_id }) => event_id === opened)

  function show(row: number): void {
    setOpened(events[row]?.event_id)
    const button = list.current?.children[row]?.querySelector('button')
    button?.focus({ preventScroll: true })
    button?.scrollIntoView({ block: 'nearest' })
  }

  /** The next refused event below the opened one, and after the last of them the first. */
  function showRefused(): void {
    const rows = events.flatMap(({ standing }, row) => (standing === null ? [] : [row]))
    const at = events.findIndex(({ event_id }) => event_id === opened)
    show(rows.find((row) => row > at) ?? rows[0] ?? 0)
  }

  function moved(event: KeyboardEvent): void {
    const step = STEPS[event.key]
    const buttons = [...(list.current?.querySelectorAll('button') ?? [])]
    const next = buttons[buttons.indexOf(event.target as HTMLButtonElement) + (step ?? 0)]
    if (step === undefined || next === undefined) return
    event.preventDefault()
    next.focus()
  }

  return (
    <>
      <Summary data={data} showRefused={showRefused} />
      <div class="graph">
        <div class="graph-body">
          <GraphLines events={events} tips={tips} list={list} opened={opened} />
          <ol ref={list} onKeyDown={moved}>
            {events.map((event, row) => (
              <li key={event.event_id} class={markOf(event, tips)}>
                <button
                  type="button"
                  class="event"
                  aria-pressed={event.event_id === opened}
                  // One stop for the tabulator key; the arrows go through the rest.
                  tabIndex={event.event_id === opened || (opened === undefined && row === 0) ? 0 : -1}
                  onClick={() => setOpened(event.event_id === opened ? undefined : event.event_id)}
                >
                  <code>{event.type}</code>
                  <bdi class="soft">{event.sender}</bdi>
                  <Standing event={event} />
                  <time class="soft" title={moment(event.origin_server_ts)}>
                    {briefly(event.origin_server_ts)}
                  </time>
                  {event.reason !== null && (
                    <span class="reason" lang="en">
                      {event.reason}
                    </span>
                  )}
                </button>
              </li>
            ))}
          </ol>
        </div>
        {shown !== undefined && <Details event={shown} isTip={tips.has(shown.event_id)} />}
      </div>
    </>
  )
}

function Standing({ event: { standing } }: { readonly event: GraphEvent }) {
  if (standing === 'rejected') return <Badge tone="bad">{t('rejected')}</Badge>
  if (standing === 'soft-failed') return <Badge tone="warn">{t('soft-failed')}</Badge>
  return null
}

function Legend({ mark, words }: { readonly mark: Mark; readonly words: string }) {
  return (
    <span>
      <svg width="16" height="16" aria-hidden="true">
        <MarkPicture mark={mark} x={8} y={8} branch={0} />
      </svg>{' '}
      {words}
    </span>
  )
}

function Summary({ data, showRefused }: { readonly data: GraphData; readonly showRefused: () => void }) {
  const { events, extremities, missing } = data
  const refused = events.filter(({ standing }) => standing !== null).length
  const tips =
    extremities.length === 1
      ? t('one forward extremity')
      : t('{count} forward extremities', { count: extremities.length })
  return (
    <div class="graph-head">
      <p>
        {t('{count} events', { count: events.length })}, {tips},{' '}
        {refused === 0 ? t('none was refused') : t('{count} refused', { count: refused })}.{' '}
        {missing.length > 0 && t('{count} of the events that these refer to are not here', { count: missing.length })}
      </p>
      {refused > 0 && (
        <button type="button" class="quiet small" onClick={showRefused}>
          {t('Next refused one')}
        </button>
      )}
      <p class="legend soft">
        <Legend mark="tip" words={t('forward extremity')} />
        <Legend mark="soft-failed" words={t('soft-failed')} />
        <Legend mark="rejected" words={t('rejected')} />
      </p>
    </div>
  )
}

function Details({ event, isTip }: { readonly event: GraphEvent; readonly isTip: boolean }) {
  const references =
    event.prev_events.length === 1 ? t('one event') : t('{count} events', { count: event.prev_events.length })
  return (
    <aside class="card" aria-label={t('The event')}>
      {event.reason !== null && (
        <p class="verdict">
          <Standing event={event} /> <span lang="en">{event.reason}</span>
        </p>
      )}
      <Facts
        list={[
          [t('Event'), <code>{event.event_id}</code>],
          [t('Type'), <code>{event.type}</code>],
          [
            t('State key'),
            event.state_key === null ? t('none: not a state event') : <code>{event.state_key || "''"}</code>,
          ],
          [
            t('Sender'),
            <a href={to(['users', event.sender])}>
              <bdi>{event.sender}</bdi>
            </a>,
          ],
          [t('Said to be of'), moment(event.origin_server_ts)],
          [t('Depth'), String(event.depth)],
          [t('Refers to'), references],
          [t('Size'), bytes(event.bytes)],
          ...(event.standing === null
            ? [[t('Place'), isTip ? t('a forward extremity') : t('in the room')] as const]
            : []),
        ]}
      />
    </aside>
  )
}
