/** The pages, in the order of the menu. `g` and the key lead to one. */
export const SECTIONS = [
  { id: '', title: 'Overview', key: 'o' },
  { id: 'users', title: 'Users', key: 'u' },
  { id: 'rooms', title: 'Rooms', key: 'r' },
] as const
