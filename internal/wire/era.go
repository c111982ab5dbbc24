package wire

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// Modern says whether a request is of protocol version 2026-07-28 or later, by its own _meta, and what is wrong with one that is. The
// library does so for the methods that it knows; an Intercept for its own.
func Modern(params json.RawMessage) (bool, *Error) {
	var p struct {
		Meta *mcp.Meta `json:"_meta"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.Meta == nil {
		return false, nil
	}
	version := p.Meta.ProtocolVersion()
	switch {
	case !mcp.IsModernProtocol(version):
		return false, nil
	case p.Meta.ClientCapabilities() == nil:
		return true, &Error{Code: mcp.INVALID_PARAMS, Message: "missing or invalid _meta field " + mcp.MetaKeyClientCapabilities}
	case !mcp.IsValidProtocolVersion(version):
		e := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
		return true, &Error{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return true, nil
}
