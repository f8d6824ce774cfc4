import type { Endpoint } from '../../http/endpoint.ts'
import { cancelInvitation } from './cancel-invitation.ts'
import { eraseIdentityPerson } from './erase-identity-person.ts'
import { listActs } from './list-acts.ts'
import { listInvitations } from './list-invitations.ts'
import { showIdentityPerson } from './show-identity-person.ts'

/** Administration of an identity service that is alone: by the command line, since nobody has an account there. */
export const identityAdminEndpoints: readonly Endpoint[] = [
  listInvitations,
  cancelInvitation,
  showIdentityPerson,
  eraseIdentityPerson,
  listActs,
]
