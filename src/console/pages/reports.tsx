import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { call, path, withQuery } from '../api.ts'
import { useActing } from '../parts/acting.tsx'
import { Moment } from '../parts/moment.tsx'
import { Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Pager } from '../parts/table.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'

interface Report {
  readonly id: number
  readonly received_ts: number
  readonly user_id: string
  readonly reason: string | null
  readonly room_id?: string | null
  readonly name?: string | null
  readonly canonical_alias?: string | null
  readonly event_id?: string
  readonly sender?: string
  readonly target_user_id?: string
}

/** The three kinds of reports: where they are, and how the answer names them. */
const KINDS = {
  event: { title: 'Messages', base: '/_synapse/admin/v1/event_reports', key: 'event_reports' },
  user: { title: 'Users', base: '/_synapse/admin/v1/user_reports', key: 'user_reports' },
  room: { title: 'Rooms', base: '/_hearth/admin/v1/room_reports', key: 'room_reports' },
} as const

type Kind = keyof typeof KINDS
type Answer = { readonly total: number } & { readonly [key in (typeof KINDS)[Kind]['key']]?: Report[] }

const SIZE = 25
const isKind = (text: string): text is Kind => text in KINDS

export function Reports({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const kind = isKind(query.kind ?? '') ? (query.kind as Kind) : 'event'
  const { base, key } = KINDS[kind]
  const { from = '0' } = query
  const reports = useData<Answer>(withQuery(base, { from, limit: SIZE, dir: 'b' }))
  return (
    <Page title="Reports" words="What users of this server have reported, new ones first.">
      <Tabs
        label="Kinds of reports"
        tabs={Object.entries(KINDS).map(([id, { title }]) => [id, title] as const)}
        current={kind}
        addressOf={(id) => to(['reports'], { kind: id })}
      />
      <Shown of={reports}>
        {(data) => {
          const rows = data[key] ?? []
          return (
            <>
              {rows.length === 0 && <p class="empty">Nothing was reported. Good.</p>}
              {rows.map((report) => (
                <ReportCard key={`${kind} ${report.id}`} kind={kind} report={report} reload={reports.reload} />
              ))}
              <Pager
                from={Number(from)}
                shown={rows.length}
                total={data.total}
                size={SIZE}
                turn={(next) => go(to(['reports'], { kind, from: String(next) }))}
              />
            </>
          )
        }}
      </Shown>
    </Page>
  )
}

function User({ id }: { readonly id: string }) {
  return <a href={to(['users', id])}>{id}</a>
}

function subjectOf(kind: Kind, { sender, target_user_id, room_id, name, canonical_alias }: Report): ComponentChildren {
  const room = room_id != null && <a href={to(['rooms', room_id])}>{name ?? canonical_alias ?? room_id}</a>
  if (kind === 'user') return <User id={target_user_id ?? ''} />
  if (kind === 'room') return room
  return (
    <>
      {sender === undefined ? 'a message' : <User id={sender} />} in {room}
    </>
  )
}

function ReportCard({
  kind,
  report,
  reload,
}: {
  readonly kind: Kind
  readonly report: Report
  readonly reload: () => void
}) {
  const { ask, run, isBusy } = useActing()
  const [isOpen, setOpen] = useState(false)
  const accused = report.sender ?? report.target_user_id

  async function dismiss(): Promise<void> {
    const base = KINDS[kind].base
    if (await run('The report is closed.', () => call('DELETE', `${base}/${report.id}`))) reload()
  }

  async function suspend(): Promise<void> {
    if (accused === undefined) return
    const title = `Suspend ${accused}?`
    const words = <p>They can read, leave rooms and log out, and write to nobody. You can take it back.</p>
    if ((await ask({ title, words, verb: 'Suspend', isGrave: true })) === undefined) return
    await run(`${accused} is suspended.`, () =>
      call('PUT', path`/_matrix/client/v1/admin/suspend/${accused}`, { suspended: true }),
    )
  }

  return (
    <article class="card report">
      <p>
        <strong>{subjectOf(kind, report)}</strong>
      </p>
      <p class="quote">{report.reason ?? <span class="soft">without a reason</span>}</p>
      <p class="soft">
        reported by <User id={report.user_id} /> <Moment at={report.received_ts} />
      </p>
      {isOpen && <ReportedEvent id={report.id} />}
      <p class="actions">
        {kind === 'event' && (
          <button type="button" class="quiet small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Hide the message' : 'Show the message'}
          </button>
        )}
        {accused !== undefined && (
          <button type="button" class="quiet small" disabled={isBusy} onClick={() => void suspend()}>
            Suspend {kind === 'event' ? 'the sender' : 'the user'}
          </button>
        )}
        <button type="button" class="quiet small" disabled={isBusy} onClick={() => void dismiss()}>
          Close the report
        </button>
      </p>
    </article>
  )
}

function ReportedEvent({ id }: { readonly id: number }) {
  const report = useData<{ event_json: { content?: { body?: unknown } } | null }>(
    `/_synapse/admin/v1/event_reports/${id}`,
  )
  return (
    <Shown of={report}>
      {({ event_json: event }) =>
        event === null ? (
          <p class="soft">This server does not have the message any more.</p>
        ) : (
          <>
            {typeof event.content?.body === 'string' && <blockquote>{event.content.body}</blockquote>}
            <details>
              <summary>The event</summary>
              <pre>{JSON.stringify(event, null, 2)}</pre>
            </details>
          </>
        )
      }
    </Shown>
  )
}
