import { withQuery } from '../api.ts'
import { count } from '../format.ts'
import { Badge } from '../parts/badge.tsx'
import { Page } from '../parts/page.tsx'
import { Search } from '../parts/search.tsx'
import { Shown } from '../parts/state.tsx'
import { type Column, Pager, Table } from '../parts/table.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'

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
    title: t('Room'),
    isHeading: true,
    cell: ({ room_id, name, canonical_alias }) => (
      <a href={to(['rooms', room_id])}>
        <bdi>{name ?? canonical_alias ?? <span class="soft">{t('without a name')}</span>}</bdi>
        <bdi class="soft block">{name !== null && canonical_alias !== null ? canonical_alias : room_id}</bdi>
      </a>
    ),
  },
  {
    title: t('Kind'),
    cell: ({ encryption, public: isPublic, room_type }) => (
      <span class="badges">
        {room_type === 'm.space' && <Badge>{t('space')}</Badge>}
        {isPublic && <Badge>{t('listed')}</Badge>}
        {encryption !== null && <Badge tone="good">{t('encrypted')}</Badge>}
      </span>
    ),
  },
  { title: t('Members'), order: 'members', isNumber: true, cell: ({ joined_members }) => count(joined_members) },
  { title: t('Ours'), isNumber: true, cell: ({ joined_local_members }) => count(joined_local_members) },
  { title: t('Events'), order: 'events', isNumber: true, cell: ({ events }) => count(events) },
  { title: t('Version'), isNumber: true, cell: ({ version }) => version },
]

export function Rooms({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { search, from = '0', order = 'members' } = query
  const rooms = useData<{ rooms: RoomRow[]; total: number }>(
    withQuery('/_hearth/admin/v1/rooms', { search, from, limit: SIZE, order }),
  )
  const change = (changes: Readonly<Record<string, string | undefined>>, isReplacing = false) =>
    go(to(['rooms'], { ...query, from: undefined, ...changes }), isReplacing)
  return (
    <Page title={t('Rooms')}>
      <div class="bar">
        <Search
          label={t('Search by name, alias or id')}
          value={search ?? ''}
          search={(text) => change({ search: text || undefined }, true)}
        />
        <label class="choice">
          <span>{t('in order of')}</span>
          <select value={order} onChange={(event) => change({ order: event.currentTarget.value })}>
            <option value="members">{t('members')}</option>
            <option value="events">{t('events')}</option>
            <option value="newest">{t('age, new ones first')}</option>
          </select>
        </label>
      </div>
      <Shown of={rooms}>
        {({ rooms: rows, total }) => (
          <>
            <Table
              label={t('Rooms')}
              columns={COLUMNS}
              rows={rows}
              keyOf={(room) => room.room_id}
              empty={search === undefined ? t('There are no rooms yet.') : t('No room is called that.')}
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
