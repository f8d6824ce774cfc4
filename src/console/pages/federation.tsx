import { call, path, withQuery } from '../api.ts'
import { count } from '../format.ts'
import { useActing } from '../parts/acting.tsx'
import { Badge } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Page } from '../parts/page.tsx'
import { Search } from '../parts/search.tsx'
import { Shown } from '../parts/state.tsx'
import { Pager, Table } from '../parts/table.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'

interface Destination {
  readonly destination: string
  readonly failure_ts: number | null
  readonly retry_last_ts: number
  readonly retry_ts?: number | null
  readonly failures?: number
  readonly last_error?: string | null
  readonly lag?: number
}

const SIZE = 50

export function Federation({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { destination, from = '0', by = 'failure_ts', dir = 'b' } = query
  const servers = useData<{ destinations: Destination[]; total: number }>(
    withQuery('/_synapse/admin/v1/federation/destinations', { destination, from, limit: SIZE, order_by: by, dir }),
  )
  const { run, isBusy } = useActing()
  const change = (changes: Readonly<Record<string, string | undefined>>, isReplacing = false) =>
    go(to(['federation'], { ...query, from: undefined, ...changes }), isReplacing)

  async function retry(server: string): Promise<void> {
    const url = path`/_synapse/admin/v1/federation/destinations/${server}/reset_connection`
    if (await run(t('{server} is tried now.', { server }), () => call('POST', url))) servers.reload()
  }

  return (
    <Page
      title={t('Federation')}
      words={t('The servers that share rooms with this one, and how sending to them goes.')}
      actions={
        <button type="button" class="quiet" onClick={servers.reload}>
          {t('Look again')}
        </button>
      }
    >
      <div class="bar">
        <Search
          label={t('Search by name')}
          value={destination ?? ''}
          search={(text) => change({ destination: text || undefined }, true)}
        />
      </div>
      <Shown of={servers}>
        {({ destinations: rows, total }) => (
          <>
            <Table
              label={t('Servers')}
              rows={rows}
              keyOf={(row) => row.destination}
              empty={
                destination === undefined
                  ? t('This server shares no room with another one.')
                  : t('No server is called that.')
              }
              ordering={{
                by,
                isDescending: dir === 'b',
                set: (order, isDescending) => change({ by: order, dir: isDescending ? 'b' : 'f' }),
              }}
              columns={[
                { title: t('Server'), order: 'destination', isHeading: true, cell: (row) => row.destination },
                { title: t('State'), cell: (row) => <Condition row={row} /> },
                {
                  title: t('Failing since'),
                  order: 'failure_ts',
                  cell: ({ failure_ts }) => (failure_ts === null ? '–' : <Moment at={failure_ts} />),
                },
                {
                  title: t('Lag'),
                  isNumber: true,
                  cell: ({ lag = 0 }) => (lag === 0 ? '–' : t('{count} events', { count: count(lag) })),
                },
                {
                  title: t('Last error'),
                  cell: ({ last_error }) => (
                    <span class="soft" lang="en">
                      {last_error ?? '–'}
                    </span>
                  ),
                },
                {
                  title: t('Next try'),
                  cell: ({ destination: server, failure_ts, retry_ts }) =>
                    failure_ts === null ? (
                      '–'
                    ) : (
                      <span class="badges">
                        {retry_ts != null && retry_ts > Date.now() ? <Moment at={retry_ts} /> : t('soon')}
                        <button type="button" class="quiet small" disabled={isBusy} onClick={() => void retry(server)}>
                          {t('Retry now')}
                        </button>
                      </span>
                    ),
                },
              ]}
            />
            <Pager
              from={Number(from)}
              shown={rows.length}
              total={total}
              size={SIZE}
              turn={(next) => change({ from: String(next) })}
            />
          </>
        )}
      </Shown>
    </Page>
  )
}

function Condition({ row: { failure_ts, failures = 0, lag = 0 } }: { readonly row: Destination }) {
  if (failure_ts !== null)
    return (
      <Badge tone="bad">
        {failures === 1 ? t('failed once') : t('failed {count} times', { count: count(failures) })}
      </Badge>
    )
  return lag > 0 ? <Badge tone="warn">{t('catching up')}</Badge> : <Badge tone="good">{t('has everything')}</Badge>
}
