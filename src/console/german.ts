import { common } from './german/common.ts'
import { operation } from './german/operation.ts'
import { people } from './german/people.ts'
import { rooms } from './german/rooms.ts'

/** Every text of the console, and what it is in German. */
export const german = { ...common, ...people, ...rooms, ...operation }
