import { withQuery } from '../api.ts'
import { count } from '../format.ts'
import { Badge } from '../parts/badge.tsx'
import { Page } from '../parts/page.tsx'
import { Search } from '../parts/search.tsx'
import { Shown } from '../parts/state.tsx'
import { type Column, Pager, Table } from '../parts/table.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'

export interface RoomRow {
  readonly room_id: string
  readonly name: string | null
  readonly canonical_alias: string | null
  readonly joined_members: number
  readonly joined_local_members: number
  readonly version: string
  readonly creator: string | null
  readonly encryption: string | null
  readonly federatable: boolean
  readonly public: boolean
  readonly join_rules: string | null
  readonly guest_access: string | null
  readonly history_visibility: string | null
  readonly state_events: number
  readonly room_type: string | null
  readonly events: number
}

const SIZE = 50

const COLUMNS: readonly Column<RoomRow>[] = [
  {
    title: 'Room',
    isHeading: true,
    cell: ({ room_id, name, canonical_alias }) => (
      <a href={to(['rooms', room_id])}>
        {name ?? canonical_alias ?? <span class="soft">without a name</span>}
        <span class="soft block">{name !== null && canonical_alias !== null ? canonical_alias : room_id}</span>
      </a>
    ),
  },
  {
    title: 'Kind',
    cell: ({ encryption, public: isPublic, room_type }) => (
      <span class="badges">
        {room_type === 'm.space' && <Badge>space</Badge>}
        {isPublic && <Badge>listed</Badge>}
        {encryption !== null && <Badge tone="good">encrypted</Badge>}
      </span>
    ),
  },
  { title: 'Members', order: 'members', isNumber: true, cell: ({ joined_members }) => count(joined_members) },
  { title: 'Ours', isNumber: true, cell: ({ joined_local_members }) => count(joined_local_members) },
  { title: 'Events', order: 'events', isNumber: true, cell: ({ events }) => count(events) },
  { title: 'Version', isNumber: true, cell: ({ version }) => version },
]

export function Rooms({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { search, from = '0', order = 'members' } = query
  const rooms = useData<{ rooms: RoomRow[]; total: number }>(
    withQuery('/_hearth/admin/v1/rooms', { search, from, limit: SIZE, order }),
  )
  const change = (changes: Readonly<Record<string, string | undefined>>, isReplacing = false) =>
    go(to(['rooms'], { ...query, from: undefined, ...changes }), isReplacing)
  return (
    <Page title="Rooms">
      <div class="bar">
        <Search
          label="Search by name, alias or id"
          value={search ?? ''}
          search={(text) => change({ search: text || undefined }, true)}
        />
        <label class="choice">
          <span>in order of</span>
          <select value={order} onChange={(event) => change({ order: event.currentTarget.value })}>
            <option value="members">members</option>
            <option value="events">events</option>
            <option value="newest">age, new ones first</option>
          </select>
        </label>
      </div>
      <Shown of={rooms}>
        {({ rooms: rows, total }) => (
          <>
            <Table
              label="Rooms"
              columns={COLUMNS}
              rows={rows}
              keyOf={(room) => room.room_id}
              empty={search === undefined ? 'There are no rooms yet.' : 'No room is called that.'}
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
