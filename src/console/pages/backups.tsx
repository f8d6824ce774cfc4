import { bytes, duration, moment } from '../format.ts'
import { Moment } from '../parts/moment.tsx'
import { Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'

interface Backup {
  readonly backup_id: string
  readonly place: string
  readonly begun_at: number
  readonly ended_at: number
  readonly bytes: number
}

export function Backups() {
  const backups = useData<{ backups: Backup[]; every_hours: number }>('/_hearth/admin/v1/backups')
  return (
    <Page
      title={t('Backups')}
      words={t('The last hundred whole backups. A restore is a command, with the server stopped: hearth restore')}
    >
      <Shown of={backups}>
        {({ backups: rows, every_hours }) => (
          <>
            <p>
              {every_hours === 0
                ? t('None is made by itself: set backup.every_hours, or run hearth backup.')
                : every_hours === 1
                  ? t('One is made every hour.')
                  : t('One is made every {count} hours.', { count: every_hours })}
            </p>
            <Table
              label={t('Backups')}
              rows={rows}
              keyOf={(row) => row.backup_id}
              empty={t('There is no backup yet.')}
              columns={[
                { title: t('Backup'), isHeading: true, cell: ({ backup_id }) => <code>{backup_id}</code> },
                { title: t('Ended'), cell: ({ ended_at }) => <Moment at={ended_at} /> },
                { title: t('Begun'), cell: ({ begun_at }) => moment(begun_at) },
                { title: t('Took'), cell: ({ begun_at, ended_at }) => duration(ended_at - begun_at) },
                { title: t('Size'), isNumber: true, cell: (row) => bytes(row.bytes) },
                { title: t('Place'), cell: ({ place }) => <code>{place}</code> },
              ]}
            />
          </>
        )}
      </Shown>
    </Page>
  )
}
