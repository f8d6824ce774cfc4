import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { call, path, withQuery } from '../api.ts'
import { useActing } from '../parts/acting.tsx'
import { Badge } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Pager } from '../parts/table.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'

interface Report {
  readonly id: number
  readonly kind: 'event' | 'user' | 'room'
  readonly state: 'open' | 'decided'
  readonly received_ts: number
  readonly user_id: string
  readonly reason: string | null
  readonly room_id?: string | null
  readonly name?: string | null
  readonly canonical_alias?: string | null
  readonly event_id?: string
  readonly sender?: string | null
  readonly target_user_id?: string
  readonly decided_ts?: number
  readonly decided_by?: string
  readonly decision?: string
}

interface WholeReport extends Report {
  readonly notes: readonly { readonly ts: number; readonly author: string; readonly text: string }[]
  readonly event_json: { readonly content?: { readonly body?: unknown } } | null
}

const SIZE = 25
const STATES = [
  ['open', 'Open'],
  ['decided', 'Decided'],
] as const

export function Reports({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { from = '0', state = 'open' } = query
  const reports = useData<{ reports: Report[]; total: number }>(
    withQuery('/_hearth/admin/v1/reports', { state, from, limit: SIZE }),
  )
  return (
    <Page title="Reports" words="What users of this server have reported, new ones first.">
      <Tabs
        label="States of reports"
        tabs={STATES}
        current={state}
        addressOf={(id) => to(['reports'], { state: id })}
      />
      <Shown of={reports}>
        {({ reports: rows, total }) => (
          <>
            {rows.length === 0 && (
              <p class="empty">{state === 'open' ? 'No report is open. Good.' : 'Nothing was decided yet.'}</p>
            )}
            {rows.map((report) => (
              <ReportCard key={report.id} report={report} reload={reports.reload} />
            ))}
            <Pager
              from={Number(from)}
              shown={rows.length}
              total={total}
              size={SIZE}
              turn={(next) => go(to(['reports'], { state, from: String(next) }))}
            />
          </>
        )}
      </Shown>
    </Page>
  )
}

function User({ id }: { readonly id: string }) {
  return <a href={to(['users', id])}>{id}</a>
}

function subjectOf({ kind, sender, target_user_id, room_id, name, canonical_alias }: Report): ComponentChildren {
  const room = room_id != null && <a href={to(['rooms', room_id])}>{name ?? canonical_alias ?? room_id}</a>
  if (kind === 'user') return <User id={target_user_id ?? ''} />
  if (kind === 'room') return <>the room {room}</>
  return (
    <>
      {sender == null ? 'a message' : <User id={sender} />} in {room}
    </>
  )
}

function ReportCard({ report, reload }: { readonly report: Report; readonly reload: () => void }) {
  const { ask, run, isBusy } = useActing()
  const [isOpen, setOpen] = useState(false)
  const accused = report.sender ?? report.target_user_id
  const base = `/_hearth/admin/v1/reports/${report.id}`

  async function decide(): Promise<void> {
    const answers = await ask({
      title: 'Close the report',
      fields: [{ name: 'decision', label: 'What was decided', hint: 'Other administrators read it.' }],
      verb: 'Close it',
    })
    if (answers === undefined) return
    await run('The report is closed.', () => call('POST', `${base}/decide`, { decision: answers.decision }))
    // Also where somebody else was first: what they decided is shown.
    reload()
  }

  async function reopen(): Promise<void> {
    if (await run('The report is open again.', () => call('POST', `${base}/reopen`))) reload()
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
        <strong>{subjectOf(report)}</strong>
      </p>
      <p class="quote">{report.reason ?? <span class="soft">without a reason</span>}</p>
      <p class="soft">
        reported by <User id={report.user_id} /> <Moment at={report.received_ts} />
      </p>
      {report.state === 'decided' && (
        <p>
          <Badge tone="good">decided</Badge> {report.decision}{' '}
          <span class="soft">
            by {report.decided_by} <Moment at={report.decided_ts} />
          </span>
        </p>
      )}
      {isOpen && <Whole id={report.id} />}
      <p class="actions">
        <button type="button" class="quiet small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Show less' : 'Show more'}
        </button>
        {accused !== undefined && report.kind !== 'room' && (
          <button type="button" class="quiet small" disabled={isBusy} onClick={() => void suspend()}>
            Suspend {report.kind === 'event' ? 'the sender' : 'the user'}
          </button>
        )}
        {report.state === 'open' ? (
          <button type="button" class="quiet small" disabled={isBusy} onClick={() => void decide()}>
            Close the report
          </button>
        ) : (
          <button type="button" class="quiet small" disabled={isBusy} onClick={() => void reopen()}>
            Open it again
          </button>
        )}
      </p>
    </article>
  )
}

function Whole({ id }: { readonly id: number }) {
  const report = useData<WholeReport>(`/_hearth/admin/v1/reports/${id}`)
  const { run, isBusy } = useActing()

  async function note(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const text = String(new FormData(form).get('note') ?? '')
    if (await run('The note is kept.', () => call('POST', `/_hearth/admin/v1/reports/${id}/notes`, { text }))) {
      form.reset()
      report.reload()
    }
  }

  return (
    <Shown of={report}>
      {({ kind, event_json: event, notes }) => (
        <>
          {kind === 'event' && event === null && <p class="soft">The message was not here when it was reported.</p>}
          {event !== null && (
            <>
              {typeof event.content?.body === 'string' && <blockquote>{event.content.body}</blockquote>}
              <details>
                <summary>The event, as it was reported</summary>
                <pre>{JSON.stringify(event, null, 2)}</pre>
              </details>
            </>
          )}
          {notes.map(({ ts, author, text }) => (
            <p key={`${ts} ${text}`} class="note">
              {text}{' '}
              <span class="soft">
                {author} <Moment at={ts} />
              </span>
            </p>
          ))}
          <form class="line" onSubmit={(submitted) => void note(submitted)}>
            <label>
              Note for other administrators
              <input name="note" required maxLength={2000} autocomplete="off" />
            </label>
            <button type="submit" class="quiet" disabled={isBusy}>
              Keep it
            </button>
          </form>
        </>
      )}
    </Shown>
  )
}
