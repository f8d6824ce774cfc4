import { useState } from 'preact/hooks'
import { call, path, reasonOf, withQuery } from '../api.ts'
import { bytes, count } from '../format.ts'
import { useActing } from '../parts/acting.tsx'
import { Badge } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Card, Facts, Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Pager, Table } from '../parts/table.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'
import { rich, t } from '../words.ts'

interface Usage {
  readonly user_id: string
  readonly displayname: string | null
  readonly media_count: number
  readonly media_length: number
}

const SIZE = 50

export function Media({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { from = '0', by = 'media_length', dir = 'b' } = query
  const usage = useData<{ users: Usage[]; total: number }>(
    withQuery('/_synapse/admin/v1/statistics/users/media', { from, limit: SIZE, order_by: by, dir }),
  )
  const change = (changes: Readonly<Record<string, string | undefined>>) =>
    go(to(['media'], { ...query, from: undefined, ...changes }))
  return (
    <Page title={t('Media')} words={t('Who keeps how much here, and single files.')}>
      <OneFile />
      <Shown of={usage}>
        {({ users: rows, total }) => (
          <>
            <Table
              label={t('Uploads of each user')}
              rows={rows}
              keyOf={(row) => row.user_id}
              empty={t('Nobody has uploaded anything.')}
              ordering={{
                by,
                isDescending: dir === 'b',
                set: (order, isDescending) => change({ by: order, dir: isDescending ? 'b' : 'f' }),
              }}
              columns={[
                {
                  title: t('User'),
                  order: 'user_id',
                  isHeading: true,
                  cell: ({ user_id, displayname }) => (
                    <a href={to(['users', user_id], { tab: 'media' })}>
                      <bdi>{user_id}</bdi>
                      {displayname !== null && <bdi class="soft block">{displayname}</bdi>}
                    </a>
                  ),
                },
                {
                  title: t('Files'),
                  order: 'media_count',
                  isNumber: true,
                  cell: ({ media_count }) => count(media_count),
                },
                {
                  title: t('Size'),
                  order: 'media_length',
                  isNumber: true,
                  cell: ({ media_length }) => bytes(media_length),
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

interface FileInfo {
  readonly media_info: {
    readonly media_origin: string | null
    readonly user_id: string | null
    readonly media_id: string
    readonly media_type: string | null
    readonly media_length: number | null
    readonly upload_name: string | null
    readonly created_ts: number
    readonly quarantined_by: string | null
    readonly safe_from_quarantine: boolean
  }
}

const MXC = /^(?:mxc:\/\/)?([^/\s]+)\/([\w-]+)$/

/** Looks for a file by the address that is in a message, and hides or deletes it. */
function OneFile() {
  const { ask, run, isBusy } = useActing()
  const [found, setFound] = useState<{ server: string; id: string; info: FileInfo['media_info'] }>()
  const [problem, setProblem] = useState<string>()

  async function look(server: string, id: string): Promise<void> {
    try {
      const { media_info: info } = await call<FileInfo>('GET', path`/_synapse/admin/v1/media/${server}/${id}`)
      setFound({ server, id, info })
      setProblem(undefined)
    } catch (error) {
      setFound(undefined)
      setProblem(reasonOf(error))
    }
  }

  function submitted(event: SubmitEvent): void {
    event.preventDefault()
    const text = String(new FormData(event.currentTarget as HTMLFormElement).get('address') ?? '').trim()
    const [, server, id] = MXC.exec(text) ?? []
    if (server === undefined || id === undefined)
      setProblem(t('An address of a file is like mxc://example.org/abcdef.'))
    else void look(server, id)
  }

  async function act(verb: 'quarantine' | 'unquarantine', done: string): Promise<void> {
    if (found === undefined) return
    const { server, id } = found
    if (await run(done, () => call('POST', path`/_synapse/admin/v1/media/${verb}/${server}/${id}`)))
      await look(server, id)
  }

  async function remove(): Promise<void> {
    if (found === undefined) return
    const { server, id } = found
    const words = <p>{t('The file is gone for everybody. A quarantine can be taken back, this cannot.')}</p>
    if ((await ask({ title: t('Delete the file?'), words, verb: t('Delete'), isGrave: true })) === undefined) return
    if (await run(t('The file is deleted.'), () => call('DELETE', path`/_synapse/admin/v1/media/${server}/${id}`)))
      setFound(undefined)
  }

  return (
    <Card title={t('One file')}>
      <form class="line" onSubmit={submitted}>
        <label>
          {t('Address of the file')}
          <input name="address" data-search="yes" placeholder="mxc://example.org/abcdef" required autocomplete="off" />
        </label>
        <button type="submit">{t('Look')}</button>
      </form>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {found !== undefined && (
        <>
          <Facts
            list={[
              [t('Name'), found.info.upload_name],
              [t('Type'), found.info.media_type],
              [t('Size'), bytes(found.info.media_length)],
              [t('Uploaded'), <Moment at={found.info.created_ts} />],
              [t('By'), found.info.user_id && <a href={to(['users', found.info.user_id])}>{found.info.user_id}</a>],
              [
                t('State'),
                found.info.quarantined_by === null ? (
                  <Badge tone="good">{t('shown')}</Badge>
                ) : (
                  <Badge tone="bad">
                    {rich('quarantined by {who}', { who: <bdi>{found.info.quarantined_by}</bdi> })}
                  </Badge>
                ),
              ],
            ]}
          />
          <p class="actions">
            {found.info.quarantined_by === null ? (
              <button
                type="button"
                class="quiet"
                disabled={isBusy}
                onClick={() => void act('quarantine', t('Nobody sees the file, nor another one with the same bytes.'))}
              >
                {t('Quarantine')}
              </button>
            ) : (
              <button
                type="button"
                class="quiet"
                disabled={isBusy}
                onClick={() => void act('unquarantine', t('The file is seen again.'))}
              >
                {t('Show again')}
              </button>
            )}
            <button type="button" class="quiet grave" disabled={isBusy} onClick={() => void remove()}>
              {t('Delete')}
            </button>
          </p>
        </>
      )}
    </Card>
  )
}
