import type { Endpoint } from '../../http/endpoint.ts'
import { checkUsernameAvailability } from './check-username-availability.ts'
import { defineFilter } from './define-filter.ts'
import { deleteDevice } from './delete-device.ts'
import { deleteDevices } from './delete-devices.ts'
import { deleteProfileField } from './delete-profile-field.ts'
import { getAccountData } from './get-account-data.ts'
import { getAccountDataPerRoom } from './get-account-data-per-room.ts'
import { getCapabilities } from './get-capabilities.ts'
import { getDevice } from './get-device.ts'
import { getDevices } from './get-devices.ts'
import { getFilter } from './get-filter.ts'
import { getLoginFlows } from './get-login-flows.ts'
import { getPresence } from './get-presence.ts'
import { getProfileField } from './get-profile-field.ts'
import { getProtocols } from './get-protocols.ts'
import { getPushRule } from './get-push-rule.ts'
import { getPushRuleActions } from './get-push-rule-actions.ts'
import { getPushRules } from './get-push-rules.ts'
import { getPushRulesGlobal } from './get-push-rules-global.ts'
import { getPushers } from './get-pushers.ts'
import { getRoomKeysVersionCurrent } from './get-room-keys-version-current.ts'
import { getTokenOwner } from './get-token-owner.ts'
import { getTurnServer } from './get-turn-server.ts'
import { getUserProfile } from './get-user-profile.ts'
import { getVersions } from './get-versions.ts'
import { isPushRuleEnabled } from './is-push-rule-enabled.ts'
import { login } from './login.ts'
import { logout } from './logout.ts'
import { logoutAll } from './logout-all.ts'
import { register } from './register.ts'
import { registrationTokenValidity } from './registration-token-validity.ts'
import { setAccountData } from './set-account-data.ts'
import { setAccountDataPerRoom } from './set-account-data-per-room.ts'
import { setPresence } from './set-presence.ts'
import { setProfileField } from './set-profile-field.ts'
import { sync } from './sync.ts'
import { updateDevice } from './update-device.ts'

/** The client-server interface, in the order of the specification. */
export const clientEndpoints: readonly Endpoint[] = [
  getVersions,

  getLoginFlows,
  login,
  logout,
  logoutAll,

  register,
  checkUsernameAvailability,
  registrationTokenValidity,
  getTokenOwner,

  getCapabilities,

  defineFilter,
  getFilter,

  sync,

  getPresence,
  setPresence,

  getUserProfile,
  getProfileField,
  setProfileField,
  deleteProfileField,

  getTurnServer,

  getDevices,
  getDevice,
  updateDevice,
  deleteDevice,
  deleteDevices,

  getRoomKeysVersionCurrent,

  getPushers,
  getPushRules,
  getPushRulesGlobal,
  getPushRule,
  isPushRuleEnabled,
  getPushRuleActions,

  getAccountData,
  setAccountData,
  getAccountDataPerRoom,
  setAccountDataPerRoom,

  getProtocols,
]
