import type { Office } from './admin-client-office.ts'

/** A page by its address, and a text that must be on it. */
export type Place = readonly [address: string, shows: string]

const USER_TABS = [
  ['', 'Alice'],
  ['/threepid', 'alice@example.org'],
  ['/sso', 'Save'],
  ['/devices', '127.0.0.1'],
  ['/connections', '127.0.0.1'],
  ['/media', 'seed.png'],
  ['/rooms', 'Garden'],
  ['/memberships', 'Garden'],
  ['/pushers', 'http'],
  ['/experimental', 'msc'],
  ['/limits', 'Rate'],
  ['/accountdata', 'Global'],
] as const

const ROOM_TABS = [
  ['', 'Garden'],
  ['/members', '@mallory'],
  ['/media', 'Delete'],
  ['/state', 'm.room.create'],
  ['/messages', 'Please stop.'],
  ['/forward_extremities', '$'],
] as const

const enc = encodeURIComponent

function list(name: string, by: string, filter: object = {}): string {
  const query = { filter: JSON.stringify(filter), sort: by, order: 'DESC', page: '1', perPage: '10' }
  return `/${name}?${new URLSearchParams(query)}`
}

/** The pages of Ketesa that it has for a server without paid extras, with the lists in other orders and with their filters. */
export function pagesOf(office: Office): readonly Place[] {
  const { roomId, spaceId, reporter, eventReport, userReport, registrationToken, destination } = office
  const anyUser = { name: 'a', guests: false, deactivated: true, locked: true, suspended: true }
  return [
    ['/users', '@mallory'],
    [list('users', 'creation_ts', { name: 'a' }), '@mallory'],
    [list('users', 'displayname', anyUser), 'User'],
    ['/users/create', 'Generate password'],
    ...USER_TABS.map(([tab, shows]): Place => [`/users/${enc(reporter)}${tab}`, shows]),
    ['/import_users', 'CSV'],
    ['/rooms', 'Garden'],
    [list('rooms', 'joined_members', { search_term: 'gard' }), 'Garden'],
    [list('rooms', 'encryption', { public_rooms: true }), 'Garden'],
    ...ROOM_TABS.map(([tab, shows]): Place => [`/rooms/${enc(roomId)}/show${tab}`, shows]),
    [`/rooms/${enc(spaceId)}/show/hierarchy`, 'Garden'],
    ['/user_media_statistics', '@alice'],
    [list('user_media_statistics', 'media_count'), '@alice'],
    ['/database_room_statistics', 'Garden'],
    ['/reports', 'Garden'],
    [`/reports/${eventReport}/show`, 'It is spam.'],
    [`/reports/${eventReport}/show/detail`, 'Buy this!'],
    ['/user_reports', '@mallory'],
    [`/user_reports/${userReport}/show`, 'It is spam.'],
    ['/room_directory', 'Garden'],
    ['/destinations', destination],
    [list('destinations', 'failure_ts', { destination: 'far' }), destination],
    [`/destinations/${enc(destination)}/show`, destination],
    [`/destinations/${enc(destination)}/show/rooms`, 'Garden'],
    ['/registration_tokens', registrationToken],
    [list('registration_tokens', 'token', { valid: true }), registrationToken],
    ['/registration_tokens/create', 'Save'],
    [`/registration_tokens/${enc(registrationToken)}`, 'Uses'],
    ['/scheduled_tasks', 'Tasks'],
  ]
}
