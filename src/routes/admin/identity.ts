import type { Endpoint } from '../../http/endpoint.ts'
import { cancelInvitation } from './identity/cancel-invitation.ts'
import { eraseIdentityPerson } from './identity/erase-identity-person.ts'
import { listInvitations } from './identity/list-invitations.ts'
import { showIdentityPerson } from './identity/show-identity-person.ts'
import { listActs } from './server/list-acts.ts'

/** Administration of an identity service that is alone: by the command line, since nobody has an account there. */
export const identityAdminEndpoints: readonly Endpoint[] = [
  listInvitations,
  cancelInvitation,
  showIdentityPerson,
  eraseIdentityPerson,
  listActs,
]
