import type { Text } from './words.ts'

/** The pages, in the order of the menu. `g` and the key lead to one. */
export const SECTIONS = [
  { id: '', title: 'Overview', key: 'o' },
  { id: 'users', title: 'Users', key: 'u' },
  { id: 'rooms', title: 'Rooms', key: 'r' },
  { id: 'reports', title: 'Reports', key: 'p' },
  { id: 'wave', title: 'Spam wave', key: 'w' },
  { id: 'lists', title: 'Policy lists', key: 'l' },
  { id: 'media', title: 'Media', key: 'm' },
  { id: 'federation', title: 'Federation', key: 'f' },
  { id: 'tokens', title: 'Registration tokens', key: 't' },
  { id: 'bridges', title: 'Bridges', key: 'b' },
  { id: 'bindings', title: 'Identity bindings', key: 'i' },
  { id: 'backups', title: 'Backups', key: 'k' },
  { id: 'configuration', title: 'Configuration', key: 'c' },
  { id: 'acts', title: 'Record of acts', key: 'a' },
] as const satisfies readonly { readonly id: string; readonly title: Text; readonly key: string }[]
