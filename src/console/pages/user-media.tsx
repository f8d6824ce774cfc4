import { useState } from 'preact/hooks'
import { call, path, withQuery } from '../api.ts'
import { facts } from '../facts.ts'
import { bytes } from '../format.ts'
import { useActing } from '../parts/acting.tsx'
import { Badge } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Shown } from '../parts/state.tsx'
import { Pager, Table } from '../parts/table.tsx'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'

interface MediaRow {
  readonly media_id: string
  readonly media_length: number | null
  readonly media_type: string | null
  readonly upload_name: string | null
  readonly created_ts: number
  readonly last_access_ts: number | null
  readonly quarantined_by: string | null
  readonly safe_from_quarantine: boolean
}

const SIZE = 50

export function UserMedia({ userId }: { readonly userId: string }) {
  const [from, setFrom] = useState(0)
  const media = useData<{ media: MediaRow[]; total: number }>(
    withQuery(path`/_synapse/admin/v1/users/${userId}/media`, { from, limit: SIZE, order_by: 'created_ts', dir: 'b' }),
  )
  const { ask, run, isBusy } = useActing()

  async function toggle({ media_id, quarantined_by }: MediaRow): Promise<void> {
    const verb = quarantined_by === null ? 'quarantine' : 'unquarantine'
    const done = quarantined_by === null ? t('Nobody sees the file any more.') : t('The file is seen again.')
    const url = path`/_synapse/admin/v1/media/${verb}/${facts.server_name}/${media_id}`
    if (await run(done, () => call('POST', url))) media.reload()
  }

  async function quarantineAll(): Promise<void> {
    const words = (
      <p>
        {t(
          'All files of {user}, and every copy of the same bytes, are shown to nobody. You can take it back one by one.',
          {
            user: userId,
          },
        )}
      </p>
    )
    if ((await ask({ title: t('Hide all files?'), words, verb: t('Hide them'), isGrave: true })) === undefined) return
    if (
      await run(t('The files are hidden.'), () =>
        call('POST', path`/_synapse/admin/v1/user/${userId}/media/quarantine`),
      )
    )
      media.reload()
  }

  return (
    <Shown of={media}>
      {({ media: rows, total }) => (
        <>
          {rows.length > 0 && (
            <p class="actions">
              <button type="button" class="quiet grave" disabled={isBusy} onClick={() => void quarantineAll()}>
                {t('Quarantine all')}
              </button>
            </p>
          )}
          <Table
            label={t('Media')}
            rows={rows}
            keyOf={(row) => row.media_id}
            empty={t('No files.')}
            columns={[
              {
                title: t('File'),
                isHeading: true,
                cell: ({ upload_name, media_id }) => (
                  <>
                    <bdi>{upload_name ?? t('without a name')}</bdi>
                    <span class="soft block">{media_id}</span>
                  </>
                ),
              },
              { title: t('Type'), cell: ({ media_type }) => media_type ?? '–' },
              { title: t('Size'), isNumber: true, cell: ({ media_length }) => bytes(media_length) },
              { title: t('Uploaded'), cell: ({ created_ts }) => <Moment at={created_ts} /> },
              {
                title: t('State'),
                cell: ({ quarantined_by, safe_from_quarantine }) => (
                  <span class="badges">
                    {quarantined_by !== null && <Badge tone="bad">{t('quarantined')}</Badge>}
                    {safe_from_quarantine && <Badge tone="good">{t('protected')}</Badge>}
                  </span>
                ),
              },
              {
                title: t('Act'),
                cell: (row) => (
                  <button type="button" class="quiet small" disabled={isBusy} onClick={() => void toggle(row)}>
                    {row.quarantined_by === null ? t('Quarantine') : t('Show again')}
                  </button>
                ),
              },
            ]}
          />
          <Pager from={from} shown={rows.length} total={total} size={SIZE} turn={setFrom} />
        </>
      )}
    </Shown>
  )
}
