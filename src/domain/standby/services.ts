import type { Config } from '../../config/schema.ts'
import type { AccountData } from '../accounts/account-data.ts'
import type { Devices } from '../accounts/devices.ts'
import type { Filters } from '../accounts/filters.ts'
import type { Profiles } from '../accounts/profiles.ts'
import type { Operators } from '../admin/operators.ts'
import type { KeyBackups } from '../e2e/key-backups.ts'
import type { KeyQueries } from '../keys/query.ts'
import type { StandbyMedia } from '../media/standby-media.ts'
import type { PushRuleEdits } from '../push/rule-edits.ts'
import type { PushRules } from '../push/rules.ts'
import type { StandbyRoomReader } from '../rooms/read/standby-reader.ts'
import type { Sync } from '../sync/sync.ts'
import type { ProfileAccess } from '../user-directory/profile-access.ts'

/**
 * What endpoints call that a node which stands by may answer: a part of `Services` that reads rows, writes nothing, and keeps nothing that
 * the write of another node would make wrong.
 */
export interface StandbyServices {
  readonly config: Config
  readonly roomReader: StandbyRoomReader
  readonly sync: Pick<Sync, 'answer'>
  readonly accountData: Pick<AccountData, 'get' | 'find'>
  readonly pushRules: Pick<PushRules, 'ruleset'>
  readonly pushRuleEdits: Pick<PushRuleEdits, 'get'>
  readonly profiles: Pick<Profiles, 'get' | 'getField'>
  readonly profileAccess: Pick<ProfileAccess, 'require'>
  readonly keyBackups: Pick<KeyBackups, 'get' | 'getKey' | 'getKeys'>
  readonly keyQueries: Pick<KeyQueries, 'query'>
  readonly admin: { readonly operators: Pick<Operators, 'isAdmin'> }
  readonly devices: Pick<Devices, 'list' | 'get'>
  readonly filters: Pick<Filters, 'get'>
  readonly media: StandbyMedia
}
