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
    if (await run(`${server} is tried now.`, () => call('POST', url))) servers.reload()
  }

  return (
    <Page
      title="Federation"
      words="The servers that share rooms with this one, and how sending to them goes."
      actions={
        <button type="button" class="quiet" onClick={servers.reload}>
          Look again
        </button>
      }
    >
      <div class="bar">
        <Search
          label="Search by name"
          value={destination ?? ''}
          search={(text) => change({ destination: text || undefined }, true)}
        />
      </div>
      <Shown of={servers}>
        {({ destinations: rows, total }) => (
          <>
            <Table
              label="Servers"
              rows={rows}
              keyOf={(row) => row.destination}
              empty={
                destination === undefined ? 'This server shares no room with another one.' : 'No server is called that.'
              }
              ordering={{
                by,
                isDescending: dir === 'b',
                set: (order, isDescending) => change({ by: order, dir: isDescending ? 'b' : 'f' }),
              }}
              columns={[
                { title: 'Server', order: 'destination', isHeading: true, cell: (row) => row.destination },
                { title: 'State', cell: (row) => <Condition row={row} /> },
                {
                  title: 'Failing since',
                  order: 'failure_ts',
                  cell: ({ failure_ts }) => (failure_ts === null ? '–' : <Moment at={failure_ts} />),
                },
                { title: 'Lag', isNumber: true, cell: ({ lag = 0 }) => (lag === 0 ? '–' : `${count(lag)} events`) },
                {
                  title: 'Last error',
                  cell: ({ last_error }) => <span class="soft">{last_error ?? '–'}</span>,
                },
                {
                  title: 'Next try',
                  cell: ({ destination: server, failure_ts, retry_ts }) =>
                    failure_ts === null ? (
                      '–'
                    ) : (
                      <span class="badges">
                        {retry_ts != null && retry_ts > Date.now() ? <Moment at={retry_ts} /> : 'soon'}
                        <button type="button" class="quiet small" disabled={isBusy} onClick={() => void retry(server)}>
                          Retry now
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
    return <Badge tone="bad">failed {failures === 1 ? 'once' : `${count(failures)} times`}</Badge>
  return lag > 0 ? <Badge tone="warn">catching up</Badge> : <Badge tone="good">has everything</Badge>
}
