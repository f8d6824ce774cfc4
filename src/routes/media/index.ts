import type { Endpoint } from '../../http/endpoint.ts'
import { createContent } from './create-content.ts'
import { getConfig } from './get-config.ts'
import { getConfigAuthed } from './get-config-authed.ts'
import { getContent } from './get-content.ts'
import { getContentAuthed } from './get-content-authed.ts'
import { getContentOverrideName } from './get-content-override-name.ts'
import { getContentOverrideNameAuthed } from './get-content-override-name-authed.ts'
import { getContentThumbnail } from './get-content-thumbnail.ts'
import { getContentThumbnailAuthed } from './get-content-thumbnail-authed.ts'
import { getUrlPreview } from './get-url-preview.ts'
import { getUrlPreviewAuthed } from './get-url-preview-authed.ts'
import { uploadContent } from './upload-content.ts'
import { uploadContentToMxc } from './upload-content-to-mxc.ts'

/** The content repository's part of the client-server interface, in the order of the specification. */
export const mediaEndpoints: readonly Endpoint[] = [
  getContentAuthed,
  getContentOverrideNameAuthed,
  getContentThumbnailAuthed,
  getUrlPreviewAuthed,
  getConfigAuthed,

  uploadContent,
  uploadContentToMxc,
  createContent,
  getContent,
  getContentOverrideName,
  getContentThumbnail,
  getUrlPreview,
  getConfig,
]
