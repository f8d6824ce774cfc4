import { withQuery } from '../api.ts'
import { Badge } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Page } from '../parts/page.tsx'
import { Search } from '../parts/search.tsx'
import { Shown } from '../parts/state.tsx'
import { type Column, Pager, Table } from '../parts/table.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'

export interface UserRow {
  readonly name: string
  readonly displayname: string | null
  readonly is_guest: boolean
  readonly admin: boolean
  readonly deactivated: boolean
  readonly erased: boolean
  readonly shadow_banned: boolean
  readonly locked: boolean
  readonly suspended: boolean
  readonly appservice_id?: string | null
  readonly creation_ts: number
  readonly last_seen_ts: number | null
}

/** One account, with what lists leave out. */
export interface User extends UserRow {
  readonly threepids: readonly { readonly medium: string; readonly address: string }[]
  readonly external_ids: readonly { readonly auth_provider: string; readonly external_id: string }[]
}

const SIZE = 50
/** Lists give milliseconds. */
const COLUMNS: readonly Column<UserRow>[] = [
  {
    title: t('User'),
    order: 'name',
    isHeading: true,
    cell: ({ name, displayname }) => (
      <a href={to(['users', name])}>
        <bdi>{name}</bdi>
        {displayname !== null && <bdi class="soft block">{displayname}</bdi>}
      </a>
    ),
  },
  { title: t('State'), cell: (user) => <UserBadges user={user} /> },
  { title: t('Created'), order: 'creation_ts', cell: ({ creation_ts }) => <Moment at={creation_ts} /> },
  { title: t('Last seen'), order: 'last_seen_ts', cell: ({ last_seen_ts }) => <Moment at={last_seen_ts} /> },
]

export function UserBadges({ user }: { readonly user: UserRow }) {
  const { admin, is_guest, locked, suspended, deactivated, erased, shadow_banned, appservice_id } = user
  return (
    <span class="badges">
      {admin && <Badge tone="warn">{t('administrator')}</Badge>}
      {is_guest && <Badge>{t('guest')}</Badge>}
      {appservice_id != null && <Badge>{t('of {bridge}', { bridge: appservice_id })}</Badge>}
      {locked && <Badge tone="bad">{t('locked')}</Badge>}
      {suspended && <Badge tone="bad">{t('suspended')}</Badge>}
      {shadow_banned && <Badge tone="bad">{t('shadow banned')}</Badge>}
      {deactivated && <Badge tone="bad">{erased ? t('deactivated, erased') : t('deactivated')}</Badge>}
    </span>
  )
}

export function Users({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { name, from = '0', by = 'name', dir = 'f', all } = query
  const users = useData<{ users: UserRow[]; total: number }>(
    withQuery('/_synapse/admin/v2/users', {
      name,
      from,
      limit: SIZE,
      order_by: by,
      dir,
      locked: true,
      deactivated: all === 'yes',
    }),
  )
  const change = (changes: Readonly<Record<string, string | undefined>>, isReplacing = false) =>
    go(to(['users'], { ...query, from: undefined, ...changes }), isReplacing)
  return (
    <Page title={t('Users')}>
      <div class="bar">
        <Search
          label={t('Search by name or user id')}
          value={name ?? ''}
          search={(text) => change({ name: text || undefined }, true)}
        />
        <label class="choice">
          <input
            type="checkbox"
            checked={all === 'yes'}
            onChange={(event) => change({ all: event.currentTarget.checked ? 'yes' : undefined })}
          />
          <span>{t('with deactivated ones')}</span>
        </label>
      </div>
      <Shown of={users}>
        {({ users: rows, total }) => (
          <>
            <Table
              label={t('Users')}
              columns={COLUMNS}
              rows={rows}
              keyOf={(user) => user.name}
              empty={name === undefined ? t('There are no accounts yet.') : t('Nobody is called that.')}
              ordering={{
                by,
                isDescending: dir === 'b',
                set: (order, isDescending) => change({ by: order, dir: isDescending ? 'b' : 'f' }),
              }}
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
