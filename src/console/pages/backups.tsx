import { bytes, duration, moment } from '../format.ts'
import { Moment } from '../parts/moment.tsx'
import { Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { useData } from '../use-data.ts'

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
      title="Backups"
      words="The last hundred whole backups. A restore is a command, with the server stopped: hearth restore"
    >
      <Shown of={backups}>
        {({ backups: rows, every_hours }) => (
          <>
            <p>
              {every_hours > 0
                ? `One is made every ${every_hours === 1 ? 'hour' : `${every_hours} hours`}.`
                : 'None is made by itself: set backup.every_hours, or run hearth backup.'}
            </p>
            <Table
              label="Backups"
              rows={rows}
              keyOf={(row) => row.backup_id}
              empty="There is no backup yet."
              columns={[
                { title: 'Backup', isHeading: true, cell: ({ backup_id }) => <code>{backup_id}</code> },
                { title: 'Ended', cell: ({ ended_at }) => <Moment at={ended_at} /> },
                { title: 'Begun', cell: ({ begun_at }) => moment(begun_at) },
                { title: 'Took', cell: ({ begun_at, ended_at }) => duration(ended_at - begun_at) },
                { title: 'Size', isNumber: true, cell: (row) => bytes(row.bytes) },
                { title: 'Place', cell: ({ place }) => <code>{place}</code> },
              ]}
            />
          </>
        )}
      </Shown>
    </Page>
  )
}
