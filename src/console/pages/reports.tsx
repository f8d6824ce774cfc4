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
import { rich, t } from '../words.ts'

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
  ['open', t('Open')],
  ['decided', t('Decided')],
] as const

export function Reports({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { from = '0', state = 'open' } = query
  const reports = useData<{ reports: Report[]; total: number }>(
    withQuery('/_hearth/admin/v1/reports', { state, from, limit: SIZE }),
  )
  return (
    <Page title={t('Reports')} words={t('What users of this server have reported, new ones first.')}>
      <Tabs
        label={t('States of reports')}
        tabs={STATES}
        current={state}
        addressOf={(id) => to(['reports'], { state: id })}
      />
      <Shown of={reports}>
        {({ reports: rows, total }) => (
          <>
            {rows.length === 0 && (
              <p class="empty">{state === 'open' ? t('No report is open. Good.') : t('Nothing was decided yet.')}</p>
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
  return (
    <a href={to(['users', id])}>
      <bdi>{id}</bdi>
    </a>
  )
}

function subjectOf({ kind, sender, target_user_id, room_id, name, canonical_alias }: Report): ComponentChildren {
  const room = room_id != null && (
    <a href={to(['rooms', room_id])}>
      <bdi>{name ?? canonical_alias ?? room_id}</bdi>
    </a>
  )
  if (kind === 'user') return <User id={target_user_id ?? ''} />
  if (kind === 'room') return rich('the room {room}', { room })
  return sender == null
    ? rich('a message in {room}', { room })
    : rich('{user} in {room}', { user: <User id={sender} />, room })
}

function ReportCard({ report, reload }: { readonly report: Report; readonly reload: () => void }) {
  const { ask, run, isBusy } = useActing()
  const [isOpen, setOpen] = useState(false)
  const accused = report.sender ?? report.target_user_id
  const base = `/_hearth/admin/v1/reports/${report.id}`

  async function decide(): Promise<void> {
    const answers = await ask({
      title: t('Close the report'),
      fields: [{ name: 'decision', label: t('What was decided'), hint: t('Other administrators read it.') }],
      verb: t('Close it'),
    })
    if (answers === undefined) return
    await run(t('The report is closed.'), () => call('POST', `${base}/decide`, { decision: answers.decision }))
    // Also where somebody else was first: what they decided is shown.
    reload()
  }

  async function reopen(): Promise<void> {
    if (await run(t('The report is open again.'), () => call('POST', `${base}/reopen`))) reload()
  }

  async function suspend(): Promise<void> {
    if (accused === undefined) return
    const title = t('Suspend {user}?', { user: accused })
    const words = <p>{t('They can read, leave rooms and log out, and write to nobody. You can take it back.')}</p>
    if ((await ask({ title, words, verb: t('Suspend'), isGrave: true })) === undefined) return
    await run(t('{user} is suspended.', { user: accused }), () =>
      call('PUT', path`/_matrix/client/v1/admin/suspend/${accused}`, { suspended: true }),
    )
  }

  return (
    <article class="card report">
      <p>
        <strong>{subjectOf(report)}</strong>
      </p>
      <p class="quote">{report.reason ?? <span class="soft">{t('without a reason')}</span>}</p>
      <p class="soft">
        {rich('reported by {user} {when}', {
          user: <User id={report.user_id} />,
          when: <Moment at={report.received_ts} />,
        })}
      </p>
      {report.state === 'decided' && (
        <p>
          <Badge tone="good">{t('decided')}</Badge> <bdi>{report.decision}</bdi>{' '}
          <span class="soft">
            {rich('by {user} {when}', {
              user: <bdi>{report.decided_by}</bdi>,
              when: <Moment at={report.decided_ts} />,
            })}
          </span>
        </p>
      )}
      {isOpen && <Whole id={report.id} />}
      <p class="actions">
        <button type="button" class="quiet small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? t('Show less') : t('Show more')}
        </button>
        {accused !== undefined && report.kind !== 'room' && (
          <button type="button" class="quiet small" disabled={isBusy} onClick={() => void suspend()}>
            {report.kind === 'event' ? t('Suspend the sender') : t('Suspend the user')}
          </button>
        )}
        {report.state === 'open' ? (
          <button type="button" class="quiet small" disabled={isBusy} onClick={() => void decide()}>
            {t('Close the report')}
          </button>
        ) : (
          <button type="button" class="quiet small" disabled={isBusy} onClick={() => void reopen()}>
            {t('Open it again')}
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
    if (await run(t('The note is kept.'), () => call('POST', `/_hearth/admin/v1/reports/${id}/notes`, { text }))) {
      form.reset()
      report.reload()
    }
  }

  return (
    <Shown of={report}>
      {({ kind, event_json: event, notes }) => (
        <>
          {kind === 'event' && event === null && (
            <p class="soft">{t('The message was not here when it was reported.')}</p>
          )}
          {event !== null && (
            <>
              {typeof event.content?.body === 'string' && <blockquote>{event.content.body}</blockquote>}
              <details>
                <summary>{t('The event, as it was reported')}</summary>
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
              {t('Note for other administrators')}
              <input name="note" required maxLength={2000} autocomplete="off" />
            </label>
            <button type="submit" class="quiet" disabled={isBusy}>
              {t('Keep it')}
            </button>
          </form>
        </>
      )}
    </Shown>
  )
}
