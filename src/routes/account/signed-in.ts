import type { WebSession } from '../../domain/oauth/web-sessions.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { goTo } from '../oauth/answer.ts'
import { expiredFormPage, provenBy, signInAddress, submittedBy, type Visitor, visitorOf } from './visitor.ts'

/** A visitor who is signed in. */
export interface Owner extends Visitor {
  readonly session: WebSession
}

/** How far a person must have proved who they are: at some time, or just now, before what cannot be undone. */
type Proof = 'signed in' | 'just now'

function isOwner(visitor: Visitor, proof: Proof): visitor is Owner {
  return (
    visitor.session !== undefined && !visitor.session.isLocked && (proof === 'signed in' || visitor.session.isRecent)
  )
}

/** Shows a page to a person who is signed in, and sends others to sign in first. `next` is the page that they wanted. */
export async function whenSignedIn(
  request: EndpointRequest,
  services: Services,
  { proof, next }: { readonly proof: Proof; readonly next: string },
  show: (owner: Owner) => Promise<RawReply> | RawReply,
): Promise<RawReply> {
  const visitor = await visitorOf(request, services)
  return isOwner(visitor, proof) ? show(visitor) : goTo(signInAddress(next, {}))
}

/** Does what a form of a person asks for who is signed in. */
export async function whenSubmitted<Body extends { readonly form?: string | undefined }>(
  request: EndpointRequest<unknown, unknown, Body>,
  services: Services,
  { proof, next }: { readonly proof: Proof; readonly next: string },
  act: (owner: Owner) => Promise<RawReply> | RawReply,
): Promise<RawReply> {
  const visitor = await submittedBy(request, services)
  if (visitor === undefined) return expiredFormPage(services, request)
  return isOwner(visitor, proof) ? act(visitor) : goTo(signInAddress(next, {}))
}

/** The same for a form that sends a file, and has its proof in the address. */
export async function whenUploaded<Query extends { readonly form?: string | undefined }>(
  request: EndpointRequest<unknown, Query>,
  services: Services,
  { proof, next }: { readonly proof: Proof; readonly next: string },
  act: (owner: Owner) => Promise<RawReply> | RawReply,
): Promise<RawReply> {
  const visitor = await provenBy(request, services, request.query.form)
  if (visitor === undefined) return expiredFormPage(services, request)
  return isOwner(visitor, proof) ? act(visitor) : goTo(signInAddress(next, {}))
}
